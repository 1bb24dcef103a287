// Functions that break a rule, each with a part of the message that names it.

tt.func @f(%x: i32) -> i32 { tt.return }
// expected: the returned values do not fit
"tt.func"() <{sym_name = "f"}> ({ "tt.return"() : () -> () }) : () -> ()
// expected: attribute function_type is not given
"tt.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({ "tt.return"() : () -> () }) : () -> ()
// expected: parameters
"tt.func"() <{sym_name = "f", function_type = () -> (), arg_attrs = [{}]}> ({ "tt.return"() : () -> () }) : () -> ()
// expected: one dictionary a parameter
"tt.func"() <{sym_name = "f", function_type = () -> ()}> ({ "scf.yield"() : () -> () }) : () -> ()
// expected: ends wrongly
