"""The deployed apps with their functions and images, by name and id."""

import itertools

from modal_proto import api_pb2

from tests.doubles.modal.model import Function

_OBJECT_MAX = 2 << 20


def variants(function: Function) -> api_pb2.FunctionData:
    """A function as Modal's list of variants, with one variant."""
    only = api_pb2.FunctionData.RankedFunction(rank=0, function=function.definition)
    return api_pb2.FunctionData(ranked_functions=[only])


class Deployed:
    """Apps and functions; images are not built, and mounts are empty."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}
        self.functions: dict[str, Function] = {}
        self.images: dict[str, api_pb2.Image] = {}
        self._tags: dict[str, dict[str, str]] = {}
        self._bound: dict[bytes, str] = {}
        self._mounts: list[str] = []
        self._numbers = itertools.count(1)

    def fresh(self, kind: str) -> str:
        """A new id of a kind, such as `mo` for a mount."""
        name = f"{kind}-{next(self._numbers)}"
        if kind == "mo":
            self._mounts.append(name)
        return name

    def publish(self, request: api_pb2.AppPublishRequest) -> None:
        """Set the functions of an app."""
        self._tags[request.app_id] = dict(request.function_ids)
        if request.name:
            self.named[request.name] = request.app_id

    def found(self, app: str, tag: str) -> Function | None:
        """The function with this name in the app with this name."""
        known = self._tags.get(self.named.get(app, ""), {})
        return self.functions[known[tag]] if tag in known else None

    def layout(self, app: str) -> api_pb2.AppLayout:
        """Everything that an app consists of."""
        tags = self._tags.get(app, {})
        objects = [
            api_pb2.Object(
                object_id=each, function_handle_metadata=self.handle(self.functions[each])
            )
            for each in tags.values()
        ]
        empty = api_pb2.MountHandleMetadata(content_checksum_sha256_hex="0")
        objects += [
            api_pb2.Object(object_id=each, mount_handle_metadata=empty) for each in self._mounts
        ]
        objects += [api_pb2.Object(object_id=each) for each in self.images]
        return api_pb2.AppLayout(function_ids=tags, objects=objects)

    def build(self, image: api_pb2.Image) -> api_pb2.ImageGetOrCreateResponse:
        """The id of an image, the same for the same recipe."""
        same = (name for name, built in self.images.items() if built == image)
        name = next(same, None) or self.fresh("im")
        self.images[name] = image
        done = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)
        return api_pb2.ImageGetOrCreateResponse(
            image_id=name, result=done, metadata=api_pb2.ImageMetadata()
        )

    def handle(self, function: Function) -> api_pb2.FunctionHandleMetadata:
        """The data with which a client calls a function."""
        definition = function.definition
        return api_pb2.FunctionHandleMetadata(
            function_name=definition.function_name,
            function_type=definition.function_type,
            function_schema=definition.function_schema,
            supported_input_formats=definition.supported_input_formats,
            supported_output_formats=definition.supported_output_formats,
            app_id=function.app,
            definition_id=f"de-{function.id}",
            max_object_size_bytes=_OBJECT_MAX,
        )

    def precreate(
        self, request: api_pb2.FunctionPrecreateRequest
    ) -> api_pb2.FunctionPrecreateResponse:
        """An id for a function that is about to be created."""
        definition = api_pb2.Function(
            function_name=request.function_name,
            function_type=request.function_type,
            function_schema=request.function_schema,
            supported_input_formats=request.supported_input_formats,
            supported_output_formats=request.supported_output_formats,
        )
        name = request.existing_function_id or self.fresh("fu")
        self.functions[name] = made = Function(name, request.app_id, definition)
        return api_pb2.FunctionPrecreateResponse(
            function_id=name, handle_metadata=self.handle(made)
        )

    def create(self, request: api_pb2.FunctionCreateRequest) -> api_pb2.FunctionCreateResponse:
        """Store a function as it was defined."""
        name = request.existing_function_id or self.fresh("fu")
        definition = api_pb2.Function()
        definition.CopyFrom(request.function)
        self.functions[name] = made = Function(name, request.app_id, definition)
        return api_pb2.FunctionCreateResponse(
            function_id=name,
            function=definition,
            function_data=variants(made),
            handle_metadata=self.handle(made),
        )

    def bind(
        self, request: api_pb2.FunctionBindParamsRequest
    ) -> api_pb2.FunctionBindParamsResponse:
        """The function with other options; the same one for the same options."""
        key = request.SerializeToString(deterministic=True)
        if key not in self._bound:
            base = self.functions[request.function_id]
            name = self._bound[key] = self.fresh("fu")
            self.functions[name] = Function(
                name, base.app, base.definition, request.function_options
            )
        bound = self.functions[self._bound[key]]
        return api_pb2.FunctionBindParamsResponse(
            bound_function_id=bound.id, handle_metadata=self.handle(bound)
        )
