"""The RPCs that a client calls: apps, images, functions and their calls."""

import asyncio
import base64
import itertools
import json
import time
from pathlib import Path

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.doubles.modal.deployed import Deployed, variants
from tests.doubles.modal.model import Call, Input
from tests.doubles.modal.scheduler import Scheduler
from tests.doubles.modal.service import Service

_LONGEST_POLL_S = 55.0


def _token(claims: dict[str, object]) -> str:
    """An unsigned JSON web token."""

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part(claims)}.x"


class ClientService(Service):
    """The RPCs of a client; what it deploys is in `deployed`, what runs in `scheduler`."""

    def __init__(self, folder: Path, python_path: tuple[str, ...]) -> None:
        super().__init__()
        self.deployed = Deployed()
        self.scheduler = Scheduler(folder, python_path, self.deployed.layout)
        self.calls: dict[str, Call] = {}
        self.questions = 0
        """How many clients wait now for the output of a call."""
        self._numbers = itertools.count(1)

    async def auth_token_get(self, _: api_pb2.AuthTokenGetRequest) -> api_pb2.AuthTokenGetResponse:
        return api_pb2.AuthTokenGetResponse(token=_token({"exp": int(time.time()) + 86_400}))

    async def environment_get_or_create(
        self, request: api_pb2.EnvironmentGetOrCreateRequest
    ) -> api_pb2.EnvironmentGetOrCreateResponse:
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        name = request.deployment_name or "main"
        metadata = api_pb2.EnvironmentMetadata(name=name, settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    # Apps, images and mounts: what is deployed

    async def app_create(self, _: api_pb2.AppCreateRequest) -> api_pb2.AppCreateResponse:
        return api_pb2.AppCreateResponse(app_id=self.deployed.fresh("ap"))

    async def app_get_by_deployment_name(
        self, request: api_pb2.AppGetByDeploymentNameRequest
    ) -> api_pb2.AppGetByDeploymentNameResponse:
        app = self.deployed.named.get(request.name, "")
        return api_pb2.AppGetByDeploymentNameResponse(app_id=app)

    async def app_get_layout(
        self, request: api_pb2.AppGetLayoutRequest
    ) -> api_pb2.AppGetLayoutResponse:
        return api_pb2.AppGetLayoutResponse(app_layout=self.deployed.layout(request.app_id))

    async def app_publish(self, request: api_pb2.AppPublishRequest) -> api_pb2.AppPublishResponse:
        self.deployed.publish(request)
        page = f"http://localhost/{request.app_id}"
        return api_pb2.AppPublishResponse(url=page, deployed_at=time.time())

    async def app_heartbeat(self, _: api_pb2.AppHeartbeatRequest) -> Empty:
        return Empty()

    async def app_client_disconnect(self, _: api_pb2.AppClientDisconnectRequest) -> Empty:
        return Empty()

    async def mount_get_or_create(
        self, _: api_pb2.MountGetOrCreateRequest
    ) -> api_pb2.MountGetOrCreateResponse:
        metadata = api_pb2.MountHandleMetadata(content_checksum_sha256_hex="0")
        name = self.deployed.fresh("mo")
        return api_pb2.MountGetOrCreateResponse(mount_id=name, handle_metadata=metadata)

    async def mount_put_file(
        self, request: api_pb2.MountPutFileRequest
    ) -> api_pb2.MountPutFileResponse:
        return api_pb2.MountPutFileResponse(exists=True)

    async def mount_batched_check_existence(
        self, _: api_pb2.MountBatchedCheckExistenceRequest
    ) -> api_pb2.MountBatchedCheckExistenceResponse:
        return api_pb2.MountBatchedCheckExistenceResponse()

    async def image_get_or_create(
        self, request: api_pb2.ImageGetOrCreateRequest
    ) -> api_pb2.ImageGetOrCreateResponse:
        return self.deployed.build(request.image)

    # Functions

    async def function_precreate(
        self, request: api_pb2.FunctionPrecreateRequest
    ) -> api_pb2.FunctionPrecreateResponse:
        return self.deployed.precreate(request)

    async def function_create(
        self, request: api_pb2.FunctionCreateRequest
    ) -> api_pb2.FunctionCreateResponse:
        return self.deployed.create(request)

    async def function_get(
        self, request: api_pb2.FunctionGetRequest
    ) -> api_pb2.FunctionGetResponse:
        found = self.deployed.found(request.app_name, request.object_tag)
        if found is None:
            words = f"{request.object_tag!r} of app {request.app_name!r} was not found"
            raise GRPCError(Status.NOT_FOUND, words)
        handle = self.deployed.handle(found)
        return api_pb2.FunctionGetResponse(
            function_id=found.id, function=variants(found), handle_metadata=handle
        )

    async def function_bind_params(
        self, request: api_pb2.FunctionBindParamsRequest
    ) -> api_pb2.FunctionBindParamsResponse:
        return self.deployed.bind(request)

    async def function_get_current_stats(
        self, request: api_pb2.FunctionGetCurrentStatsRequest
    ) -> api_pb2.FunctionStats:
        pool = self.scheduler.pools.get(request.function_id)
        if pool is None:
            return api_pb2.FunctionStats()
        waiting, containers = len(pool.pending), len(pool.containers)
        return api_pb2.FunctionStats(backlog=waiting, num_total_tasks=containers)

    # Calls

    async def function_map(
        self, request: api_pb2.FunctionMapRequest
    ) -> api_pb2.FunctionMapResponse:
        function = self.deployed.functions[request.function_id]
        call = Call(f"fc-{next(self._numbers)}", function)
        self.calls[call.id] = call
        return api_pb2.FunctionMapResponse(
            function_call_id=call.id,
            pipelined_inputs=[await self._put(call, item) for item in request.pipelined_inputs],
            function_call_jwt=call.id,
            max_inputs_outstanding=1000,
        )

    async def function_put_inputs(
        self, request: api_pb2.FunctionPutInputsRequest
    ) -> api_pb2.FunctionPutInputsResponse:
        call = self._call(request.function_call_id)
        put = [await self._put(call, item) for item in request.inputs]
        return api_pb2.FunctionPutInputsResponse(inputs=put)

    async def _put(
        self, call: Call, item: api_pb2.FunctionPutInputsItem
    ) -> api_pb2.FunctionPutInputsResponseItem:
        made = Input(f"in-{next(self._numbers)}", item.idx, call, item.input)
        call.inputs[item.idx] = made
        await self.scheduler.submit(made)
        claims = {"idx": made.index, "input_id": made.id, "function_call_id": call.id}
        token = _token({**claims, "entry_id": "1-0", "retry_count": made.tries})
        return api_pb2.FunctionPutInputsResponseItem(
            idx=made.index, input_id=made.id, input_jwt=token
        )

    def _call(self, name: str) -> Call:
        if name not in self.calls:
            raise GRPCError(Status.NOT_FOUND, f"function call {name} was not found")
        return self.calls[name]

    async def function_get_outputs(
        self, request: api_pb2.FunctionGetOutputsRequest
    ) -> api_pb2.FunctionGetOutputsResponse:
        call = self._call(request.function_call_id)

        def outputs() -> list[api_pb2.FunctionGetOutputsItem]:
            return [each.output for each in call.inputs.values() if each.output is not None]

        self.questions += 1
        try:
            async with asyncio.timeout(min(request.timeout, _LONGEST_POLL_S)), call.changed:
                await call.changed.wait_for(lambda: bool(outputs()))
        except TimeoutError:
            pass
        finally:
            self.questions -= 1
        found = outputs()
        return api_pb2.FunctionGetOutputsResponse(
            outputs=found,
            idxs=[each.idx for each in found],
            last_entry_id=f"{len(found)}-0",
            num_unfinished_inputs=len(call.inputs) - len(found),
        )

    async def function_call_from_id(
        self, request: api_pb2.FunctionCallFromIdRequest
    ) -> api_pb2.FunctionCallFromIdResponse:
        call = self._call(request.function_call_id)
        return api_pb2.FunctionCallFromIdResponse(
            function_call_id=call.id, num_inputs=len(call.inputs)
        )

    async def function_call_cancel(self, request: api_pb2.FunctionCallCancelRequest) -> Empty:
        for item in tuple(self._call(request.function_call_id).inputs.values()):
            await self.scheduler.cancel(item, terminate=request.terminate_containers)
        return Empty()

    async def blob_create(self, _: api_pb2.BlobCreateRequest) -> api_pb2.BlobCreateResponse:
        return self.scheduler.blobs.create()

    async def blob_get(self, request: api_pb2.BlobGetRequest) -> api_pb2.BlobGetResponse:
        return self.scheduler.blobs.get(request.blob_id)
