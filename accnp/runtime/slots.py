"""LLVM IR that reads and makes arrays and buffers as Python has them: the words that say where they
keep what (`records` fills them in), access to slots, a number as kernels read it, a buffer from the
pool, an array over it, and `Buffer.__del__`. Only functions of Python's C interface are called.
"""

from __future__ import annotations

from accnp.runtime.buffer import MIDDLE, SMALL

__all__ = ["DROP", "LAYOUT", "LEAVES", "TEXT", "WORDS"]

DROP, LAYOUT = "accnp_drop", "accnp_layout"
# Words of the layout: types, offsets of slots, objects; then slots of a new node that are the same
# in all, pairs of offset and object.
WORDS = (
    "array", "node_of", "aval", "value", "trace", "active", "form", "inputs", "depth", "buffer",
    "ptr", "nbytes", "memory", "class", "node", "fast", "slow", "pop", "append", "free", "limits",
    "limit", "large", "run", "reused", "nothing", "zero",
)  # fmt: skip
LEAVES = 7
_word = WORDS.index
_LEAF = len(WORDS)
_WORDS = _LEAF + 2 * LEAVES

TEXT = f"""
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@{LAYOUT} = global [{_WORDS} x i64] zeroinitializer
declare void @Py_IncRef(i8*)
declare void @Py_DecRef(i8*)
declare i64 @PyLong_AsLongLong(i8*)
declare double @PyFloat_AsDouble(i8*)
declare i64 @PyObject_Size(i8*)
declare i8* @PyTuple_New(i64)
declare i64 @PyTuple_Size(i8*)
declare i8* @PyTuple_GetItem(i8*, i64)
declare i32 @PyTuple_SetItem(i8*, i64, i8*)
declare i8* @PyBytes_AsString(i8*)
declare i8* @PyDict_GetItem(i8*, i8*)
declare i8* @PyObject_Vectorcall(i8*, i8**, i64, i8*)
declare i8* @PyType_GenericAlloc(i8*, i64)
declare i8* @PyErr_Occurred()
declare void @PyErr_Clear()

define internal i64 @word(i64 %which) alwaysinline {{
  %p = getelementptr [{_WORDS} x i64], [{_WORDS} x i64]* @{LAYOUT}, i64 0, i64 %which
  %w = load i64, i64* %p
  ret i64 %w
}}
define internal i8* @object(i64 %which) alwaysinline {{
  %w = call i64 @word(i64 %which)
  %o = inttoptr i64 %w to i8*
  ret i8* %o
}}
define internal i8** @slot(i8* %object, i64 %which) alwaysinline {{
  %offset = call i64 @word(i64 %which)
  %at = getelementptr i8, i8* %object, i64 %offset
  %p = bitcast i8* %at to i8**
  ret i8** %p
}}
define internal i8* @get(i8* %object, i64 %which) alwaysinline {{
  %p = call i8** @slot(i8* %object, i64 %which)
  %v = load i8*, i8** %p
  ret i8* %v
}}
define internal void @put(i8* %object, i64 %which, i8* %value) alwaysinline {{
  %p = call i8** @slot(i8* %object, i64 %which)
  call void @Py_IncRef(i8* %value)
  store i8* %value, i8** %p
  ret void
}}
define internal i8* @type_of(i8* %object) alwaysinline {{
  %at = getelementptr i8, i8* %object, i64 8
  %p = bitcast i8* %at to i8**
  %type = load i8*, i8** %p
  ret i8* %type
}}
define internal i1 @is_a(i8* %object, i64 %which) alwaysinline {{
  %type = call i8* @type_of(i8* %object)
  %wanted = call i8* @object(i64 %which)
  %same = icmp eq i8* %type, %wanted
  ret i1 %same
}}
define internal i64 @next(i64** %p) alwaysinline {{
  %q = load i64*, i64** %p
  %w = load i64, i64* %q
  %r = getelementptr i64, i64* %q, i64 1
  store i64* %r, i64** %p
  ret i64 %w
}}
define internal i8* @next_object(i64** %p) alwaysinline {{
  %w = call i64 @next(i64** %p)
  %o = inttoptr i64 %w to i8*
  ret i8* %o
}}

; The buffer of a node whose value is there, and can be had; null for another.
define internal i8* @value_of(i8* %node) {{
  %trace = call i8* @get(i8* %node, i64 {_word("trace")})
  %free = icmp eq i8* %trace, @_Py_NoneStruct
  br i1 %free, label %look, label %traced
traced:
  %lacking = icmp eq i8* %trace, null
  br i1 %lacking, label %no, label %ask
ask:
  %active = call i8* @get(i8* %trace, i64 {_word("active")})
  %recording = icmp eq i8* %active, @_Py_TrueStruct
  br i1 %recording, label %no, label %look
look:
  %value = call i8* @get(i8* %node, i64 {_word("value")})
  %none = icmp eq i8* %value, null
  br i1 %none, label %no, label %kind
kind:
  %good = call i1 @is_a(i8* %value, i64 {_word("buffer")})
  br i1 %good, label %yes, label %no
yes:
  ret i8* %value
no:
  ret i8* null
}}

define internal i64 @address(i8* %buffer) alwaysinline {{
  %ptr = call i8* @get(i8* %buffer, i64 {_word("ptr")})
  %v = call i64 @PyLong_AsLongLong(i8* %ptr)
  ret i64 %v
}}

; Whether a number is as a record says; stores it as kernels read it.
define internal i1 @number(i8* %x, i8* %class, i64 %how, i64* %to) {{
start:
  %type = call i8* @type_of(i8* %x)
  %fits = icmp eq i8* %type, %class
  br i1 %fits, label %which, label %no
which:
  %real = icmp sgt i64 %how, 0
  br i1 %real, label %float, label %integer
float:
  %d = call double @PyFloat_AsDouble(i8* %x)
  %wide = icmp eq i64 %how, 8
  br i1 %wide, label %double, label %single
double:
  %to_d = bitcast i64* %to to double*
  store double %d, double* %to_d
  ret i1 true
single:
  %f = fptrunc double %d to float
  %to_f = bitcast i64* %to to float*
  store float %f, float* %to_f
  ret i1 true
integer:
  %i = call i64 @PyLong_AsLongLong(i8* %x)
  %unsure = icmp eq i64 %i, -1
  br i1 %unsure, label %ask, label %known
ask:
  %error = call i8* @PyErr_Occurred()
  %good = icmp eq i8* %error, null
  br i1 %good, label %known, label %clear
clear:
  call void @PyErr_Clear()
  ret i1 false
known:
  store i64 %i, i64* %to
  %narrow = trunc i64 %i to i32
  %back = sext i32 %narrow to i64
  %small = icmp eq i64 %back, %i
  %long = icmp eq i64 %how, -8
  %in_range = or i1 %small, %long
  ret i1 %in_range
no:
  ret i1 false
}}

; A buffer over a free block of the pool; null where there is none.
define internal i8* @take(i8* %blocks, i8* %nbytes, i8* %class) {{
  %count = call i64 @PyObject_Size(i8* %blocks)
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %pop, label %no
pop:
  %args = alloca i8*
  store i8* %blocks, i8** %args
  %function = call i8* @object(i64 {_word("pop")})
  %block = call i8* @PyObject_Vectorcall(i8* %function, i8** %args, i64 1, i8* null)
  %failed = icmp eq i8* %block, null
  br i1 %failed, label %clear, label %make
clear:
  call void @PyErr_Clear()
  br label %no
make:
  %type = call i8* @object(i64 {_word("buffer")})
  %made = call i8* @PyType_GenericAlloc(i8* %type, i64 0)
  %lacking = icmp eq i8* %made, null
  br i1 %lacking, label %done, label %fill
fill:
  %ptr = call i8* @PyTuple_GetItem(i8* %block, i64 0)
  call void @put(i8* %made, i64 {_word("ptr")}, i8* %ptr)
  %memory = call i8* @PyTuple_GetItem(i8* %block, i64 1)
  call void @put(i8* %made, i64 {_word("memory")}, i8* %memory)
  call void @put(i8* %made, i64 {_word("nbytes")}, i8* %nbytes)
  call void @put(i8* %made, i64 {_word("class")}, i8* %class)
  %p = getelementptr [{_WORDS} x i64], [{_WORDS} x i64]* @{LAYOUT}, i64 0, i64 {_word("reused")}
  %reused = load i64, i64* %p
  %more = add i64 %reused, 1
  store i64 %more, i64* %p
  br label %done
done:
  call void @Py_DecRef(i8* %block)
  ret i8* %made
no:
  ret i8* null
}}

; An array over a buffer.
define internal i8* @array(i8* %buffer, i8* %aval) {{
  %kind = call i8* @object(i64 {_word("node")})
  %node = call i8* @PyType_GenericAlloc(i8* %kind, i64 0)
  %lacking = icmp eq i8* %node, null
  br i1 %lacking, label %no, label %fill
fill:
  %i = phi i64 [0, %0], [%i1, %fill]
  %twice = shl i64 %i, 1
  %at = add i64 %twice, {_LEAF}
  %then = add i64 %at, 1
  %value = call i8* @object(i64 %then)
  call void @put(i8* %node, i64 %at, i8* %value)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, {LEAVES}
  br i1 %more, label %fill, label %filled
filled:
  call void @put(i8* %node, i64 {_word("aval")}, i8* %aval)
  call void @put(i8* %node, i64 {_word("value")}, i8* %buffer)
  %type = call i8* @object(i64 {_word("array")})
  %made = call i8* @PyType_GenericAlloc(i8* %type, i64 0)
  %none = icmp eq i8* %made, null
  br i1 %none, label %drop, label %give
drop:
  call void @Py_DecRef(i8* %node)
  ret i8* null
give:
  %p = call i8** @slot(i8* %made, i64 {_word("node_of")})
  store i8* %node, i8** %p
  ret i8* %made
no:
  ret i8* null
}}

; Whether containers are empty, and names stand for what they did.
define internal i1 @usual(i64** %p, i64 %empties, i64 %names) {{
start:
  br label %empty
empty:
  %e = phi i64 [0, %start], [%e1, %is_empty]
  %e_more = icmp slt i64 %e, %empties
  br i1 %e_more, label %is_empty, label %name
is_empty:
  %container = call i8* @next_object(i64** %p)
  %length = call i64 @PyObject_Size(i8* %container)
  %e1 = add i64 %e, 1
  %nothing = icmp eq i64 %length, 0
  br i1 %nothing, label %empty, label %no
name:
  %s = phi i64 [0, %empty], [%s1, %is_same]
  %s_more = icmp slt i64 %s, %names
  br i1 %s_more, label %is_same, label %yes
is_same:
  %where = call i8* @next_object(i64** %p)
  %what = call i8* @next_object(i64** %p)
  %wanted = call i8* @next_object(i64** %p)
  %now = call i8* @PyDict_GetItem(i8* %where, i8* %what)
  %s1 = add i64 %s, 1
  %same = icmp eq i8* %now, %wanted
  br i1 %same, label %name, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; Fixed addresses, then those of fresh buffers, which are held; how many of these there are: less
; than asked for where the pool has none.
define internal i64 @spaces(i64** %p, i64 %fixed, i64 %fresh, i64* %base, i8** %held) {{
start:
  br label %constant
constant:
  %k = phi i64 [0, %start], [%k1, %is_constant]
  %k_more = icmp slt i64 %k, %fixed
  br i1 %k_more, label %is_constant, label %buffer
is_constant:
  %known = call i64 @next(i64** %p)
  %kp = getelementptr i64, i64* %base, i64 %k
  store i64 %known, i64* %kp
  %k1 = add i64 %k, 1
  br label %constant
buffer:
  %r = phi i64 [0, %constant], [%r1, %made]
  %r_more = icmp slt i64 %r, %fresh
  br i1 %r_more, label %make, label %done
make:
  %blocks = call i8* @next_object(i64** %p)
  %nbytes = call i8* @next_object(i64** %p)
  %class = call i8* @next_object(i64** %p)
  %new = call i8* @take(i8* %blocks, i8* %nbytes, i8* %class)
  %without = icmp eq i8* %new, null
  br i1 %without, label %done, label %made
made:
  %np = getelementptr i8*, i8** %held, i64 %r
  store i8* %new, i8** %np
  %r1 = add i64 %r, 1
  %r_to = add i64 %r, %fixed
  %rp = getelementptr i64, i64* %base, i64 %r_to
  %r_address = call i64 @address(i8* %new)
  store i64 %r_address, i64* %rp
  br label %buffer
done:
  ret i64 %r
}}

define internal void @let_go(i8** %held, i64 %count) {{
start:
  br label %next
next:
  %g = phi i64 [0, %start], [%g1, %one]
  %more = icmp slt i64 %g, %count
  br i1 %more, label %one, label %end
one:
  %gp = getelementptr i8*, i8** %held, i64 %g
  %gone = load i8*, i8** %gp
  call void @Py_DecRef(i8* %gone)
  %g1 = add i64 %g, 1
  br label %next
end:
  ret void
}}

define internal void @launch(i64* %base, i64 %mode) alwaysinline {{
  %code = call i64 @word(i64 {_word("run")})
  %run = inttoptr i64 %code to void (i64*, i64)*
  call void %run(i64* %base, i64 %mode)
  ret void
}}

define i8* @{DROP}(i8* %self, i8* %nothing) {{
start:
  %args = alloca i8*, i64 2
  %class = call i8* @get(i8* %self, i64 {_word("class")})
  %unmade = icmp eq i8* %class, null
  br i1 %unmade, label %end, label %sized
sized:
  %size = call i64 @PyLong_AsLongLong(i8* %class)
  %pooled = icmp sgt i64 %size, 0
  br i1 %pooled, label %find, label %end
find:
  %free = call i8* @object(i64 {_word("free")})
  %blocks = call i8* @PyDict_GetItem(i8* %free, i8* %class)
  %strange = icmp eq i8* %blocks, null
  br i1 %strange, label %end, label %measure
measure:
  %small = icmp sle i64 %size, {SMALL}
  br i1 %small, label %keep, label %middle
middle:
  %large = icmp sge i64 %size, {MIDDLE}
  br i1 %large, label %ask, label %room
room:
  %limits = call i8* @object(i64 {_word("limits")})
  %name = call i8* @object(i64 {_word("limit")})
  %limit_ = call i8* @PyDict_GetItem(i8* %limits, i8* %name)
  %gone = icmp eq i8* %limit_, null
  br i1 %gone, label %end, label %compare
compare:
  %limit = call i64 @PyLong_AsLongLong(i8* %limit_)
  %share = ashr i64 %limit, 4
  %count = call i64 @PyObject_Size(i8* %blocks)
  %bytes = mul i64 %count, %size
  %fits = icmp slt i64 %bytes, %share
  br i1 %fits, label %keep, label %ask
ask:
  store i8* %self, i8** %args
  %drop = call i8* @object(i64 {_word("large")})
  %told = call i8* @PyObject_Vectorcall(i8* %drop, i8** %args, i64 1, i8* null)
  ret i8* %told
keep:
  %block = call i8* @PyTuple_New(i64 2)
  %failed = icmp eq i8* %block, null
  br i1 %failed, label %fail, label %fill
fill:
  %ptr = call i8* @get(i8* %self, i64 {_word("ptr")})
  call void @Py_IncRef(i8* %ptr)
  %f0 = call i32 @PyTuple_SetItem(i8* %block, i64 0, i8* %ptr)
  %memory = call i8* @get(i8* %self, i64 {_word("memory")})
  call void @Py_IncRef(i8* %memory)
  %f1 = call i32 @PyTuple_SetItem(i8* %block, i64 1, i8* %memory)
  store i8* %blocks, i8** %args
  %args1 = getelementptr i8*, i8** %args, i64 1
  store i8* %block, i8** %args1
  %append = call i8* @object(i64 {_word("append")})
  %result = call i8* @PyObject_Vectorcall(i8* %append, i8** %args, i64 2, i8* null)
  call void @Py_DecRef(i8* %block)
  ret i8* %result
fail:
  ret i8* null
end:
  call void @Py_IncRef(i8* @_Py_NoneStruct)
  ret i8* @_Py_NoneStruct
}}
"""
