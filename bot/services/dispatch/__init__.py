"""Brings queued jobs to runners and their evaluations back into the store."""

from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.store_queue import StoreQueue

__all__ = ["DispatchConfig", "Dispatcher", "StoreQueue"]
