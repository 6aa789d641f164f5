import gzip

import pytest

from bot.web.rendering import asset_url, assets

MOST = 60_000
"""Bytes that the largest may have, compressed: a page loads two or three of them."""
MOST_EDITOR = 180_000
"""The same limit for the editor, which one page loads after its own content."""


def test_every_file_is_addressed_by_what_is_in_it_and_packed_as_it_is() -> None:
    for name, asset in assets().items():
        assert asset.url == f"/static/{asset.digest}/{name}"
        assert gzip.decompress(asset.zipped) == asset.data
        assert len(asset.zipped) < (MOST_EDITOR if name == "editor.js" else MOST)
    assert len({each.digest for each in assets().values()}) == len(assets())


def test_what_is_not_ours_comes_with_its_licence_and_nothing_is_loaded_from_elsewhere() -> None:
    names = set(assets())
    assert {name for name in names if "uplot" in name} > {"uplot-LICENSE.txt"}
    assert {name for name in names if "editor" in name} > {"editor-LICENSE.txt"}
    for name in names - {"uplot-LICENSE.txt", "editor-LICENSE.txt"}:
        assert b"//cdn" not in assets()[name].data
        assert b"sourceMappingURL" not in assets()[name].data


def test_a_file_that_is_not_there_has_no_address() -> None:
    with pytest.raises(KeyError):
        asset_url("nothing.css")
