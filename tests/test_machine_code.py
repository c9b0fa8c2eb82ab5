"""Is it told whether two libraries have the same machine code? Compiled here: a twin, a moved one, and a changed one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from torch_history.explaining import machine_code, verdict
from torch_history.explaining.library import Library, NotALibrary
from torch_history.explaining.places import of_perf
from torch_history.store.causes import Code, Place

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "objdump", "nm", "c++filt"))), reason="gcc and binutils are not installed"
)

LOOP = """
long total(const long *numbers, long count) {{
    long sum = 0;
    for (long i = 0; i < count; i++) sum += numbers[i] {change};
    return sum;
}}
"""

FILLER = 'asm(".text\\n.skip {bytes}, 0x90\\n");'


def wheel(folder: Path, filler: int = 0, change: str = "") -> Path:
    """An environment whose torch is one library with the function `total`, `filler` bytes further on."""
    library = folder / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
    library.parent.mkdir(parents=True)
    code = folder / "code.c"
    code.write_text((FILLER.format(bytes=filler) if filler else "") + LOOP.format(change=change))
    options = ["-O1", "-shared", "-fPIC", "-fno-toplevel-reorder", "-falign-functions=1"]
    subprocess.run(["gcc", *options, "-o", str(library), str(code)], check=True)
    return folder


RAW = {"libtorch_cpu: total": {("libtorch_cpu.so", "total"): 7}}


def compared(old: Path, new: Path) -> Code:
    assert machine_code.compare("not there", (old, RAW), (new, RAW)) is None
    found = machine_code.compare("libtorch_cpu: total", (old, RAW), (new, RAW))
    assert found
    return found


def test_twin_has_the_same_instructions_at_the_same_places(tmp_path: Path) -> None:
    found = compared(wheel(tmp_path / "a"), wheel(tmp_path / "b"))
    assert found.same
    assert found.old_loops == found.new_loops
    assert found.old_loops
    assert found.words == f"the same {found.instructions[0]} instructions"


@pytest.mark.parametrize("bytes_", [1, 20, 33])
def test_moved_loop_is_the_same_code_at_another_address(tmp_path: Path, bytes_: int) -> None:
    found = compared(wheel(tmp_path / "a"), wheel(tmp_path / "b", filler=bytes_))
    assert found.same
    assert (found.new_loops[0] - found.old_loops[0]) % 64 == bytes_
    assert "at another address" in found.words


def test_changed_loop_has_other_instructions(tmp_path: Path) -> None:
    found = compared(wheel(tmp_path / "a"), wheel(tmp_path / "b", change="* 3 + (i & 7)"))
    assert not found.same
    assert "other instructions" in found.words


def test_a_file_that_is_no_library_is_refused_in_words(tmp_path: Path) -> None:
    for content in (b"", b"no library at all" * 10, b"\x7fELF" + b"\xff" * 100):
        (tmp_path / "libtorch_cpu.so").write_bytes(content or b"x")
        with pytest.raises(NotALibrary, match=r"libtorch_cpu.so is no library"):
            Library(tmp_path / "libtorch_cpu.so")


def test_symbols_of_perf_keep_the_names_that_the_linker_knows() -> None:
    plain = "  12\tlibtorch_cpu.so\t[.] at::native::sum(long)\n  3\tlibc.so.6\t[.] memcpy\n"
    mangled = "  12\tlibtorch_cpu.so\t[.] _ZN2at6native3sumEl\n  3\tlibc.so.6\t[.] memcpy\n"
    symbols, raw = of_perf(plain, mangled)
    assert symbols["libtorch_cpu: at::native::sum"] == (0.8, 0.0)
    assert raw["libtorch_cpu: at::native::sum"] == {("libtorch_cpu.so", "_ZN2at6native3sumEl"): 12}


def test_sentence_says_that_a_place_has_the_same_instructions() -> None:
    place = Place("symbol", "libtorch_cpu: total", 1e-6, 9e-5, 8.8e-5, 9.2e-5, verdict="CAUSE")
    moved = Code("libtorch_cpu: total", True, (9, 9), (16,), (48,))
    assert verdict.of_all([], {}, [place], code=[moved])[1].endswith("with the same instructions at another address")
