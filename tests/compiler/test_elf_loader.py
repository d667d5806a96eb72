"""Loading object files into memory: relocations of every type, data, several files, and errors.

The results are compared with those of LLVM's linker.
"""

import ctypes

import pytest

from accnp.compiler import elf_loader, kernel_cache
from accnp.compiler.llvm import objects

BY_LLVM = True

TEXT = """
@table = internal constant [4 x i64] [i64 5, i64 7, i64 11, i64 13]
@count = common global i64 0
@start = internal global i64 40
@entries = internal global [2 x ptr] [ptr @one, ptr @two]
declare i64 @labs(i64)
declare i64 @outside(i64)
define i64 @one(i64 %x) { ret i64 1 }
define i64 @two(i64 %x) { ret i64 2 }
define i64 @lookup(i64 %i) {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @counted() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %s = load i64, ptr @start
  %sum = add i64 %s, %new
  ret i64 %sum
}
define i64 @indirect(i64 %i) {
  %p = getelementptr [2 x ptr], ptr @entries, i64 0, i64 %i
  %f = load ptr, ptr %p
  %v = call i64 %f(i64 0)
  ret i64 %v
}
define i64 @absolute(i64 %x) {
  %v = call i64 @labs(i64 %x)
  ret i64 %v
}
define i64 @address() {
  ret i64 ptrtoint (ptr @labs to i64)
}
define i64 @beyond(i64 %x) {
  %v = call i64 @outside(i64 %x)
  ret i64 %v
}
"""
OTHER = "define i64 @outside(i64 %x) {\n  %v = mul i64 %x, 3\n  ret i64 %v\n}\n"
SYMBOLS = ("lookup", "counted", "indirect", "absolute", "address", "beyond")


def call(address, *arguments):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(address)(*arguments)


@pytest.fixture(params=["own", "llvm"])
def addresses(request, monkeypatch):
    """The same from our loader and from LLVM's, which other formats need."""
    data = objects.build(TEXT, [], [OTHER])
    if request.param == "llvm":
        monkeypatch.setattr(elf_loader, "_JUMPS", {})  # no machine is known
    else:
        monkeypatch.setattr(objects, "link", None)
    symbol_addresses, keep = elf_loader.load(data, *SYMBOLS)
    yield dict(zip(SYMBOLS, symbol_addresses, strict=True))
    del keep


def test_relocations_of_every_type(addresses):
    assert [call(addresses["lookup"], i) for i in range(4)] == [5, 7, 11, 13]
    assert [call(addresses["counted"]) for _ in range(3)] == [41, 42, 43]
    assert [call(addresses["indirect"], i) for i in range(2)] == [1, 2]
    assert call(addresses["absolute"], -9) == 9
    assert call(addresses["beyond"], 14) == 42
    assert call(call(addresses["address"]), -4) == 4


def test_data_sections_are_not_shared_between_loads():
    data = objects.build(TEXT, [], [OTHER])
    first, second = (elf_loader.load(data, "counted") for _ in range(2))
    assert [call(x[0][0]) for x in (first, first, second)] == [41, 42, 41]


def test_unresolved_symbol_is_an_error():
    data = objects.build("declare void @nobody_has_this()\ndefine void @f() {\n"
                         "  call void @nobody_has_this()\n  ret void\n}\n", [])  # fmt: skip
    with pytest.raises(RuntimeError, match="nobody_has_this"):
        elf_loader.load(data, "f")


def test_code_cannot_be_written():
    data = objects.build(TEXT, [], [OTHER])
    (address,), _ = elf_loader.load(data, "lookup")
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            first, last = (int(x, 16) for x in line.split()[0].split("-"))
            if first <= address < last:
                assert line.split()[1] == "r-xp"


def test_damaged_object_files_are_rejected(tmp_path):
    data = objects.build(TEXT, [], [OTHER])
    with pytest.raises(RuntimeError):
        elf_loader.load(data[:100], "lookup")


def test_kernels_on_disk_are_loaded_without_llvm(monkeypatch, tmp_path):
    from accnp.config import cache_dir

    source = "def kernel(lo, hi, a):\n    for i in range(lo, hi):\n        a[i] = f4(3)\n"
    with cache_dir(str(tmp_path)):
        kernel_cache.get_kernel(source, "kernel", ("f4*",))
        kernel_cache.clear_kernels()
        monkeypatch.setattr(kernel_cache, "_objects", None)
        assert kernel_cache.get_kernel(source, "kernel", ("f4*",)).origin == "disk"
