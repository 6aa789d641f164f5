"""Takes queued jobs to runners and stores their evaluations."""

from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue

__all__ = ["DispatchConfig", "Dispatcher", "StoreQueue"]
