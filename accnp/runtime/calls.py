"""LLVM IR of a jitted call with arrays, numbers and containers of them; see `records`, which makes
what it reads.

The words of a record: the numbers of arguments by position and by name, of containers that must be
empty, of names that must stand for an object, of closed-over nodes, of leaves of the arguments, of
fixed addresses, of buffers to make; where the addresses of leaves begin among the bases of the
table (see `launch`); mode of the launch; what the result is made by (0: it is as it is); table,
team and helpers. Then each of these in turn: names of arguments; containers; dictionaries, names
and objects; nodes; the arguments, each with its place and what it must be; addresses; blocks, bytes
and class of each buffer; the result.

What an argument must be: a kind and more words. An array: its type. A tuple, or a list: class, how
many items, these. A dictionary: how many, for each the key and what it must be. A static value:
itself. A number: its class and how it is passed, as the size of a float, the negative size of an
integer, or 0 for a bool. What a result is: an array: the number of a buffer, and its type; a tuple,
a list, a dictionary as above but for the class; an object: itself.

Objects that a record names live as long as it, and it is held while it is in use: a collection, or
another thread while a kernel runs, may put others in its place. Buffers that are read are held for
the same reason.
"""

from __future__ import annotations

from accnp.runtime import slots

__all__ = ["CALL", "TEXT"]

CALL = "accnp_call"
ARRAY, TUPLE, LIST, DICT, SAME, NUMBER = range(6)  # kinds

_word = slots.WORDS.index

TEXT = f"""
@PyDict_Type = external global i8
declare i64 @PyList_Size(i8*)
declare i8* @PyList_New(i64)
declare i8* @PyList_GetItem(i8*, i64)
declare i32 @PyList_SetItem(i8*, i64, i8*)
declare i64 @PyDict_Size(i8*)
declare i8* @PyDict_New()
declare i32 @PyDict_SetItem(i8*, i8*, i8*)
declare i8* @PyMem_Malloc(i64)
declare void @PyMem_Free(i8*)
declare i8* @PyErr_NoMemory()

; Whether an object is as a record says; the leaves in it are numbered from `h` on: their buffers
; are held (null for a number), their addresses are bases. Items are held while they are looked at:
; keys of a dictionary may be of classes whose comparison changes the containers around.
define internal i1 @leaves_of(
  i64** %p, i8* %x, i64* %h, i8** %held, i64* %base, i64* %numbers
) {{
start:
  %kind = call i64 @next(i64** %p)
  switch i64 %kind, label %no [
    i64 {ARRAY}, label %array
    i64 {TUPLE}, label %sequence
    i64 {LIST}, label %sequence
    i64 {DICT}, label %dict
    i64 {SAME}, label %same
    i64 {NUMBER}, label %number
  ]
array:
  %aval_wanted = call i8* @next_object(i64** %p)
  %good = call i1 @is_a(i8* %x, i64 {_word("array")})
  br i1 %good, label %typed, label %no
typed:
  %node = call i8* @get(i8* %x, i64 {_word("node_of")})
  %bare = icmp eq i8* %node, null
  br i1 %bare, label %no, label %is_typed
is_typed:
  %aval = call i8* @get(i8* %node, i64 {_word("aval")})
  %fits = icmp eq i8* %aval, %aval_wanted
  br i1 %fits, label %hold, label %no
hold:
  %ready = call i1 @hold(i8* %node, i64* %h, i8** %held, i64* %base)
  ret i1 %ready
sequence:
  %class = call i8* @next_object(i64** %p)
  %n = call i64 @next(i64** %p)
  %its_class = call i8* @type_of(i8* %x)
  %of_class = icmp eq i8* %its_class, %class
  br i1 %of_class, label %measure, label %no
measure:
  %in_list = icmp eq i64 %kind, {LIST}
  %sizer = select i1 %in_list, i64 (i8*)* @PyList_Size, i64 (i8*)* @PyTuple_Size
  %getter = select i1 %in_list, i8* (i8*, i64)* @PyList_GetItem, i8* (i8*, i64)* @PyTuple_GetItem
  %size = call i64 %sizer(i8* %x)
  %right = icmp eq i64 %size, %n
  br i1 %right, label %item, label %no
item:
  %j = phi i64 [0, %measure], [%j1, %item_there]
  %j_more = icmp slt i64 %j, %n
  br i1 %j_more, label %item_of, label %yes
item_of:
  %each = call i8* %getter(i8* %x, i64 %j)
  %gone = icmp eq i8* %each, null
  br i1 %gone, label %shorter, label %item_there
shorter:
  call void @PyErr_Clear()
  ret i1 false
item_there:
  %j1 = add i64 %j, 1
  call void @Py_IncRef(i8* %each)
  %good_item = call i1 @leaves_of(
    i64** %p, i8* %each, i64* %h, i8** %held, i64* %base, i64* %numbers)
  call void @Py_DecRef(i8* %each)
  br i1 %good_item, label %item, label %no
dict:
  %n_dict = call i64 @next(i64** %p)
  %its_class_d = call i8* @type_of(i8* %x)
  %of_class_d = icmp eq i8* %its_class_d, @PyDict_Type
  br i1 %of_class_d, label %dict_size, label %no
dict_size:
  %size_d = call i64 @PyDict_Size(i8* %x)
  %right_d = icmp eq i64 %size_d, %n_dict
  br i1 %right_d, label %entry, label %no
entry:
  %m = phi i64 [0, %dict_size], [%m1, %found]
  %m_more = icmp slt i64 %m, %n_dict
  br i1 %m_more, label %entry_of, label %yes
entry_of:
  %key = call i8* @next_object(i64** %p)
  %each_d = call i8* @PyDict_GetItem(i8* %x, i8* %key)
  %m1 = add i64 %m, 1
  %absent = icmp eq i8* %each_d, null
  br i1 %absent, label %no, label %found
found:
  call void @Py_IncRef(i8* %each_d)
  %good_d = call i1 @leaves_of(
    i64** %p, i8* %each_d, i64* %h, i8** %held, i64* %base, i64* %numbers)
  call void @Py_DecRef(i8* %each_d)
  br i1 %good_d, label %entry, label %no
same:
  %itself = call i8* @next_object(i64** %p)
  %is_same = icmp eq i8* %itself, %x
  ret i1 %is_same
number:
  %class_n = call i8* @next_object(i64** %p)
  %how = call i64 @next(i64** %p)
  %at = load i64, i64* %h
  %room = getelementptr i64, i64* %numbers, i64 %at
  %good_n = call i1 @number(i8* %x, i8* %class_n, i64 %how, i64* %room)
  br i1 %good_n, label %put, label %no
put:
  %address = ptrtoint i64* %room to i64
  %bp = getelementptr i64, i64* %base, i64 %at
  store i64 %address, i64* %bp
  %hp = getelementptr i8*, i8** %held, i64 %at
  store i8* null, i8** %hp
  %at1 = add i64 %at, 1
  store i64 %at1, i64* %h
  ret i1 true
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether the value of a node is there: then it is held, as the next leaf.
define internal i1 @hold(i8* %node, i64* %h, i8** %held, i64* %base) {{
  %value = call i8* @value_of(i8* %node)
  %late = icmp eq i8* %value, null
  br i1 %late, label %no, label %yes
yes:
  call void @Py_IncRef(i8* %value)
  %at = load i64, i64* %h
  %hp = getelementptr i8*, i8** %held, i64 %at
  store i8* %value, i8** %hp
  %at1 = add i64 %at, 1
  store i64 %at1, i64* %h
  %bp = getelementptr i64, i64* %base, i64 %at
  %address = call i64 @address(i8* %value)
  store i64 %address, i64* %bp
  ret i1 true
no:
  ret i1 false
}}

; A result as a record says; null with an error.
define internal i8* @result_of(i64** %p, i8** %held) {{
start:
  %kind = call i64 @next(i64** %p)
  switch i64 %kind, label %same [
    i64 {ARRAY}, label %array
    i64 {TUPLE}, label %tuple
    i64 {LIST}, label %list
    i64 {DICT}, label %dict
  ]
array:
  %which = call i64 @next(i64** %p)
  %aval = call i8* @next_object(i64** %p)
  %op = getelementptr i8*, i8** %held, i64 %which
  %out = load i8*, i8** %op
  %made = call i8* @array(i8* %out, i8* %aval)
  ret i8* %made
same:
  %itself = call i8* @next_object(i64** %p)
  call void @Py_IncRef(i8* %itself)
  ret i8* %itself
tuple:
  %n_tuple = call i64 @next(i64** %p)
  %new_tuple = call i8* @PyTuple_New(i64 %n_tuple)
  br label %next
list:
  %n_list = call i64 @next(i64** %p)
  %new_list = call i8* @PyList_New(i64 %n_list)
  br label %next
dict:
  %n_dict = call i64 @next(i64** %p)
  %new_dict = call i8* @PyDict_New()
  br label %next
next:
  %n = phi i64 [%n_tuple, %tuple], [%n_list, %list], [%n_dict, %dict], [%n, %more]
  %all = phi i8* [%new_tuple, %tuple], [%new_list, %list], [%new_dict, %dict], [%all, %more]
  %i = phi i64 [0, %tuple], [0, %list], [0, %dict], [%i1, %more]
  %lacking = icmp eq i8* %all, null
  br i1 %lacking, label %fail, label %check
check:
  %left = icmp slt i64 %i, %n
  br i1 %left, label %one, label %done
one:
  %named = icmp eq i64 %kind, {DICT}
  br i1 %named, label %keyed, label %unkeyed
keyed:
  %key = call i8* @next_object(i64** %p)
  %value = call i8* @result_of(i64** %p, i8** %held)
  %bad_value = icmp eq i8* %value, null
  br i1 %bad_value, label %drop, label %enter
enter:
  %error = call i32 @PyDict_SetItem(i8* %all, i8* %key, i8* %value)
  call void @Py_DecRef(i8* %value)
  %entered = icmp eq i32 %error, 0
  br i1 %entered, label %more, label %drop
unkeyed:
  %item = call i8* @result_of(i64** %p, i8** %held)
  %bad_item = icmp eq i8* %item, null
  br i1 %bad_item, label %drop, label %set
set:
  %in_tuple = icmp eq i64 %kind, {TUPLE}
  br i1 %in_tuple, label %set_tuple, label %set_list
set_tuple:
  %st = call i32 @PyTuple_SetItem(i8* %all, i64 %i, i8* %item)
  %put = icmp eq i32 %st, 0
  br i1 %put, label %more, label %drop
set_list:
  %sl = call i32 @PyList_SetItem(i8* %all, i64 %i, i8* %item)
  br label %more
more:
  %i1 = add i64 %i, 1
  br label %next
drop:
  call void @Py_DecRef(i8* %all)
  br label %fail
done:
  ret i8* %all
fail:
  ret i8* null
}}

; The result of a call by a record; null if it does not fit, or with an error.
define internal i8* @by(i64* %words, i8** %args, i8* %named) {{
start:
  %p = alloca i64*
  %h = alloca i64
  store i64 0, i64* %h
  %words2 = getelementptr i64, i64* %words, i64 2
  store i64* %words2, i64** %p
  %positional = load i64, i64* %words
  %words1 = getelementptr i64, i64* %words, i64 1
  %by_name = load i64, i64* %words1
  %empties = call i64 @next(i64** %p)
  %names = call i64 @next(i64** %p)
  %closed = call i64 @next(i64** %p)
  %given = call i64 @next(i64** %p)
  %fixed = call i64 @next(i64** %p)
  %fresh = call i64 @next(i64** %p)
  %first = call i64 @next(i64** %p)
  %mode = call i64 @next(i64** %p)
  %builder = call i8* @next_object(i64** %p)
  %table = call i64 @next(i64** %p)
  %team = call i64 @next(i64** %p)
  %helpers = call i64 @next(i64** %p)
  %arguments = add i64 %positional, %by_name
  %leaves = add i64 %given, %closed
  %owned = add i64 %leaves, %fresh
  %held = alloca i8*, i64 %owned
  %numbers = alloca i64, i64 %leaves
  %all = add i64 %owned, %fixed
  %bases = add i64 %all, %first
  %spare = add i64 %bases, 4
  %base = alloca i64, i64 %spare
  %base1 = getelementptr i64, i64* %base, i64 1
  store i64 %table, i64* %base1
  %base2 = getelementptr i64, i64* %base, i64 2
  store i64 %team, i64* %base2
  %base3 = getelementptr i64, i64* %base, i64 3
  store i64 %helpers, i64* %base3
  %addresses = getelementptr i64, i64* %base, i64 %first
  br label %name
name:
  %a = phi i64 [0, %start], [%a1, %is_named]
  %a_more = icmp slt i64 %a, %by_name
  br i1 %a_more, label %is_named, label %ask
is_named:
  %name_wanted = call i8* @next_object(i64** %p)
  %its_name = call i8* @PyTuple_GetItem(i8* %named, i64 %a)
  %a1 = add i64 %a, 1
  %named_so = icmp eq i8* %its_name, %name_wanted
  br i1 %named_so, label %name, label %no
ask:
  %usual = call i1 @usual(i64** %p, i64 %empties, i64 %names)
  br i1 %usual, label %closure, label %no
closure:
  %c = phi i64 [0, %ask], [%c1, %closed_over]
  %c_more = icmp slt i64 %c, %closed
  br i1 %c_more, label %closed_over, label %argument
closed_over:
  %node = call i8* @next_object(i64** %p)
  %c1 = add i64 %c, 1
  %there = call i1 @hold(i8* %node, i64* %h, i8** %held, i64* %addresses)
  br i1 %there, label %closure, label %no
argument:
  %i = phi i64 [0, %closure], [%i1, %look]
  %i_more = icmp slt i64 %i, %arguments
  br i1 %i_more, label %look, label %room
look:
  %place = call i64 @next(i64** %p)
  %ap = getelementptr i8*, i8** %args, i64 %place
  %x = load i8*, i8** %ap
  %i1 = add i64 %i, 1
  %fits = call i1 @leaves_of(
    i64** %p, i8* %x, i64* %h, i8** %held, i64* %addresses, i64* %numbers)
  br i1 %fits, label %argument, label %no
room:
  %rest = getelementptr i64, i64* %addresses, i64 %leaves
  %own_held = getelementptr i8*, i8** %held, i64 %leaves
  %taken = call i64 @spaces(i64** %p, i64 %fixed, i64 %fresh, i64* %rest, i8** %own_held)
  %h_now = add i64 %leaves, %taken
  store i64 %h_now, i64* %h
  %complete = icmp eq i64 %taken, %fresh
  br i1 %complete, label %launch, label %no
launch:
  call void @launch(i64* %base, i64 %mode)
  %result = call i8* @result_of(i64** %p, i8** %held)
  %plain = icmp eq i8* %builder, null
  %failed = icmp eq i8* %result, null
  %as_it_is = or i1 %plain, %failed
  br i1 %as_it_is, label %release, label %build
build:
  %tp = alloca i8*
  store i8* %result, i8** %tp
  %built = call i8* @PyObject_Vectorcall(i8* %builder, i8** %tp, i64 1, i8* null)
  call void @Py_DecRef(i8* %result)
  br label %release
no:
  br label %release
release:
  %found = phi i8* [%result, %launch], [%built, %build], [null, %no]
  %last = load i64, i64* %h
  call void @let_go(i8** %held, i64 %last)
  ret i8* %found
}}

define internal i8* @slowly(i8* %self, i8** %args, i64 %nargs, i8* %names) {{
  %named = icmp ne i8* %names, null
  br i1 %named, label %count, label %counted
count:
  %more = call i64 @PyTuple_Size(i8* %names)
  br label %counted
counted:
  %extra = phi i64 [0, %0], [%more, %count]
  %given = add i64 %nargs, %extra
  %room = add i64 %given, 1
  %few = icmp slt i64 %room, 1024
  br i1 %few, label %on_stack, label %elsewhere
on_stack:
  %near = alloca i8*, i64 %room
  br label %begin
elsewhere:
  %bytes = shl i64 %room, 3
  %far_ = call i8* @PyMem_Malloc(i64 %bytes)
  %far = bitcast i8* %far_ to i8**
  %none = icmp eq i8* %far_, null
  br i1 %none, label %fail, label %begin
fail:
  %failed = call i8* @PyErr_NoMemory()
  ret i8* %failed
begin:
  %all = phi i8** [%near, %on_stack], [%far, %elsewhere]
  store i8* %self, i8** %all
  br label %next
next:
  %i = phi i64 [0, %begin], [%i1, %copy]
  %left = icmp slt i64 %i, %given
  br i1 %left, label %copy, label %call
copy:
  %p = getelementptr i8*, i8** %args, i64 %i
  %x = load i8*, i8** %p
  %i1 = add i64 %i, 1
  %q = getelementptr i8*, i8** %all, i64 %i1
  store i8* %x, i8** %q
  br label %next
call:
  %positional = add i64 %nargs, 1
  %function = call i8* @object(i64 {_word("slow")})
  %result = call i8* @PyObject_Vectorcall(
    i8* %function, i8** %all, i64 %positional, i8* %names)
  br i1 %few, label %end, label %free
free:
  %all_ = bitcast i8** %all to i8*
  call void @PyMem_Free(i8* %all_)
  br label %end
end:
  ret i8* %result
}}

define i8* @{CALL}(i8* %self, i8** %args, i64 %nargs, i8* %names) {{
start:
  %fast = call i8* @get(i8* %self, i64 {_word("fast")})
  %unknown = icmp eq i8* %fast, null
  br i1 %unknown, label %slow, label %look
look:
  %named = icmp ne i8* %names, null
  br i1 %named, label %measure, label %begin
measure:
  %extra = call i64 @PyTuple_Size(i8* %names)
  br label %begin
begin:
  %by_name = phi i64 [0, %look], [%extra, %measure]
  call void @Py_IncRef(i8* %fast)
  %count = call i64 @PyTuple_Size(i8* %fast)
  br label %next
next:
  %i = phi i64 [0, %begin], [%i1, %try], [%i1, %unfit]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %i1 = add i64 %i, 1
  %record = call i8* @PyTuple_GetItem(i8* %fast, i64 %i)
  %bytes = call i8* @PyTuple_GetItem(i8* %record, i64 0)
  %text = call i8* @PyBytes_AsString(i8* %bytes)
  %words = bitcast i8* %text to i64*
  %n = load i64, i64* %words
  %words1 = getelementptr i64, i64* %words, i64 1
  %n_named = load i64, i64* %words1
  %as_many = icmp eq i64 %n, %nargs
  %as_named = icmp eq i64 %n_named, %by_name
  %fits = and i1 %as_many, %as_named
  br i1 %fits, label %run, label %next
run:
  %found = call i8* @by(i64* %words, i8** %args, i8* %names)
  %lacking = icmp eq i8* %found, null
  br i1 %lacking, label %unfit, label %done
unfit:
  %error = call i8* @PyErr_Occurred()
  %bad = icmp ne i8* %error, null
  br i1 %bad, label %done, label %next
done:
  call void @Py_DecRef(i8* %fast)
  ret i8* %found
none:
  call void @Py_DecRef(i8* %fast)
  br label %slow
slow:
  %result = call i8* @slowly(i8* %self, i8** %args, i64 %nargs, i8* %names)
  ret i8* %result
}}
"""
