"""Modal's RPCs as plain methods; a missing one is answered with UNIMPLEMENTED."""

import asyncio
import re
from collections import Counter
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message_factory import GetMessageClass
from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream
from modal._utils.grpc_utils import custom_detail_codec
from modal_proto import api_pb2
from typing_extensions import override

_BEFORE_CAPITALS = re.compile(r"(?<!^)(?=[A-Z])")
_CARDINALITIES = {tuple(each.value): each for each in Cardinality}


class _Server(Server):
    """Grpclib's server that also closes its connections, because a killed client does not."""

    def __init__(self, service: "Service") -> None:
        super().__init__([service], status_details_codec=custom_detail_codec)
        self._protocols: list[H2Protocol] = []

    @override
    def _protocol_factory(self) -> H2Protocol:
        self._protocols.append(super()._protocol_factory())
        return self._protocols[-1]

    @override
    async def wait_closed(self) -> None:
        await super().wait_closed()
        for each in self._protocols:
            each.connection.close()
        await asyncio.sleep(0)  # lets the loop close the connections


class Service:
    """Answers the RPC `FunctionGet` with its method `function_get`, and so on."""

    def __init__(self) -> None:
        self.called: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()

    def __mapping__(self) -> dict[str, Handler]:
        service = api_pb2.DESCRIPTOR.services_by_name["ModalClient"]
        return {
            f"/{service.full_name}/{each.name}": self._handler(each) for each in service.methods
        }

    def _handler(self, method: MethodDescriptor) -> Handler:
        operation = getattr(self, _BEFORE_CAPITALS.sub("_", method.name).lower(), None)

        async def handle(stream: Stream[Any, Any]) -> None:
            request = await stream.recv_message()
            self.called[method.name] += 1
            if operation is None:
                self.missing[method.name] += 1
                raise GRPCError(Status.UNIMPLEMENTED, f"{method.name} is not simulated")
            await stream.send_message(await operation(request))

        kind = _CARDINALITIES[method.client_streaming, method.server_streaming]
        asked, answered = method.input_type, method.output_type
        return Handler(handle, kind, GetMessageClass(asked), GetMessageClass(answered))

    def server(self) -> Server:
        """A server of these RPCs; the caller starts it."""
        return _Server(self)

    async def client_hello(self, _: Empty) -> api_pb2.ClientHelloResponse:
        return api_pb2.ClientHelloResponse()
