"""Relinked classes are run by a real JVM: what is made and called, and what the verifier says."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile

import pytest

from engines.errors import BridgeError
from prism_hooks.classfile import ClassFile, Tag
from prism_hooks.relink import iter_class_files, relink, relink_class

CONSTRUCTORS = {"host/X": "ours/GpuX"}
STATICS = {
    "host/X": "ours/GpuX",
    "host/Maths": "ours/GpuMaths",
    "java/lang/Math.abs": "ours/GpuNumber",
}

SOURCES = {
    "host/X.java": """
        package host;
        import java.util.function.*;
        public class X {
            public final String text;
            public X(String text) { this.text = text; }
            public X(int number) { this("" + number); }
            public X(X inner) { this(inner.toString()); }
            public X copy() { return new X(text); }
            public static String name(int n) { return "X.name" + n; }
            public static String keep(int n) { return "X.keep" + n; }
            private static String hidden(int n) { return "hidden" + n; }
            public static String viaPrivate() {
                IntFunction<String> lambda = n -> hidden(n) + name(n);
                IntFunction<String> reference = X::hidden;
                return lambda.apply(1) + reference.apply(2);
            }
            public String toString() { return getClass().getSimpleName() + "(" + text + ")"; }
        }""",
    "host/Maths.java": """
        package host;
        public interface Maths { static int half(int n) { return n / 2; } }""",
    "host/Sub.java": """
        package host;
        public class Sub extends X {
            public Sub(int number) { super(new X(number)); }
            public Sub() { this(0); }
            public Sub(boolean flag) { super(flag ? new X(new X(1)) : new Sub(2)); }
        }""",
    "host/Untouched.java": """
        package host;
        public class Untouched {
            public static boolean is(Object o) { return o instanceof X && ((X) o).text != null; }
        }""",
    "ours/GpuX.java": """
        package ours;
        public class GpuX extends host.X {
            public GpuX(String text) { super(text); }
            public GpuX(int number) { super(number); }
            public GpuX(host.X inner) { super(inner); }
            public static String name(int n) { return "GpuX.name" + n; }
        }""",
    "ours/GpuMaths.java": """
        package ours;
        public interface GpuMaths { static int half(int n) { return -n / 2; } }""",
    "ours/GpuNumber.java": """
        package ours;
        public class GpuNumber { public static int abs(int n) { return 7; } }""",
    "run/Main.java": """
        package run;
        public class Main {
            public static void main(String[] names) {
                for (String name : names) {
                    Object result;
                    try {
                        Class<?> cases = Class.forName("host.Cases");
                        result = cases.getMethod(name).invoke(null);
                    } catch (Throwable error) { result = error + " " + error.getCause(); }
                    System.out.println(name + "=" + result);
                }
            }
        }""",
}

# Per case: the Java body, what it gives as compiled, and what it gives relinked.
CASES = {
    "plain": ('return "" + new X(1) + new X("a");', "X(1)X(a)", "GpuX(1)GpuX(a)"),
    "nested": ("return new X(new X(new X(2)));", "X(X(X(2)))", "GpuX(GpuX(GpuX(2)))"),
    "conditional": (
        """return new X(flag ? new X(1) : new Sub(2)).toString()
               + new X(flag ? 3 : new X(4).text.length());""",
        "X(X(1))X(3)",
        "GpuX(GpuX(1))GpuX(3)",
    ),
    "superCall": (
        'return "" + new Sub(1) + new Sub() + new Sub(flag) + new Sub(!flag);',
        "Sub(X(1))Sub(X(0))Sub(X(X(1)))Sub(Sub(X(2)))",
        "Sub(GpuX(1))Sub(GpuX(0))Sub(GpuX(GpuX(1)))Sub(Sub(GpuX(2)))",
    ),
    "anonymous": (
        "return new X(1) { }.getClass().getSuperclass();",
        "class host.X",
        "class host.X",
    ),
    "insideX": (
        'return new Sub(1).copy() + "" + new X(2).copy();',
        "X(X(1))X(2)",
        "GpuX(GpuX(1))GpuX(2)",
    ),
    "staticCalls": ("return X.name(1) + X.keep(2);", "X.name1X.keep2", "GpuX.name1X.keep2"),
    "interfaceStatic": ("return Maths.half(4);", "2", "-2"),
    "oneMethod": ('return "" + Math.max(-1, Math.abs(-3));', "3", "7"),
    "references": (
        """IntFunction<X> make = X::new; Function<X, X> wrap = X::new;
           IntFunction<String> name = X::name, keep = X::keep;
           return wrap.apply(make.apply(1)) + name.apply(2) + keep.apply(3);""",
        "X(X(1))X.name2X.keep3",
        "GpuX(GpuX(1))GpuX.name2X.keep3",
    ),
    "lambda": ("IntFunction<X> f = n -> new X(n); return f.apply(5);", "X(5)", "GpuX(5)"),
    "privateStatics": (
        "return X.viaPrivate();",
        "hidden1X.name1hidden2",
        "hidden1GpuX.name1hidden2",
    ),
    "arrays": (
        """X[] xs = {new X(1)}; Object o = xs[0];
           return xs.getClass() + "" + (X) o + (o instanceof X);""",
        "class [Lhost.X;X(1)true",
        "class [Lhost.X;GpuX(1)true",
    ),
    "finallyCopies": (
        """StringBuilder log = new StringBuilder();
           for (String n : new String[] {"1", "one"})
               try { log.append(new X(Integer.parseInt(n))); }
               catch (NumberFormatException e) { log.append(new X(-1)); }
               finally { log.append(new X(0)); }
           return log;""",
        "X(1)X(0)X(-1)X(0)",
        "GpuX(1)GpuX(0)GpuX(-1)GpuX(0)",
    ),
    # javac parks the uninitialised object in a local variable around the try.
    "switchArgument": (
        """return new X(switch (one) {
               case 1 -> { try { yield new X(Integer.parseInt("a")); }
                           catch (NumberFormatException e) { yield new X(7); } }
               default -> new X(8); });""",
        "X(X(7))",
        "GpuX(GpuX(7))",
    ),
    **{
        f"switches{pad}": (
            f"""int n = one; {"n++; " * pad} {"n = -n; " * pad} {"n = -n; " * pad}
                switch (n - {pad}) {{ case 0: return new X(0); case 1: n += 1; break;
                                      case 2: return 2; }}
                switch (n) {{ case -9: return 9; case {pad + 2}: return X.name(n) + new X(n);
                              case 1000: return new X(1000); }}
                return "none";""",
            f"X.name{pad + 2}X({pad + 2})",
            f"GpuX.name{pad + 2}GpuX({pad + 2})",
        )
        for pad in range(4)
    },
    "wide": (
        "".join(f"int v{i} = one; " for i in range(300))
        + "v299 += 1000; double d = v299; X x = new X(v299); v298 += 1; return x + X.name(v298);",
        "X(1001)X.name2",
        "GpuX(1001)GpuX.name2",
    ),
    # More than 32 KiB between the ends of the loop: javac needs goto_w.
    "large": (
        "int n = 0; for (int i = 0; i < one; i++) {"
        + "n += X.name(n).length(); " * 4000
        + "} return new X(n > 0 ? 1 : 0);",
        "X(1)",
        "GpuX(1)",
    ),
}  # fmt: skip


def compile_java(folder, sources, classpath=()):
    javac = shutil.which("javac")
    if javac is None or shutil.which("java") is None:
        pytest.skip("needs a JDK: javac and java are not on the PATH")
    files = []
    for name, text in sources.items():
        files.append(folder / "source" / name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(text, encoding="utf-8")
    classes = folder / "classes"
    path = ":".join(map(str, classpath)) or "."
    command = [javac, "-nowarn", "-encoding", "utf-8", "-cp", path, "-d", classes, *files]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return classes


def run_java(classpath, *arguments, options=()):
    path = ":".join(map(str, classpath))
    command = ["java", *options, "-cp", path, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout


def write_classes(folder, classes):
    for name, data in classes.items():
        file = folder / f"{name}.class"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    methods = "\n".join(
        f"public static Object {name}() {{ int one = 1; boolean flag = one == 1; {body} }}"
        for name, (body, _, _) in CASES.items()
    )
    cases = f"package host; import java.util.function.*; public class Cases {{ {methods} }}"
    folder = tmp_path_factory.mktemp("java")
    return compile_java(folder, SOURCES | {"host/Cases.java": cases})


@pytest.fixture(scope="module")
def host(compiled):
    """The classes to relink, by name: those of the host alone."""
    return {name: data for name, data in iter_class_files(compiled) if name.startswith("host/")}


@pytest.fixture(scope="module")
def relinked(host):
    results = {name: relink_class(data, CONSTRUCTORS, STATICS) for name, data in host.items()}
    return {name: data for name, data in results.items() if data is not None}


@pytest.fixture(scope="module")
def outputs(compiled, relinked, tmp_path_factory):
    """What every case prints: as compiled, relinked, and relinked with all classes verified."""
    first = write_classes(tmp_path_factory.mktemp("relinked"), relinked)
    runs = {
        "compiled": run_java([compiled], "run.Main", *CASES),
        "relinked": run_java([first, compiled], "run.Main", *CASES),
        "verified": run_java([first, compiled], "run.Main", *CASES, options=["-Xverify:all"]),
    }
    return {
        run: dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
        for run, output in runs.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_relinked_code_makes_and_calls_the_subclass(outputs, case):
    _, before, after = CASES[case]
    assert outputs["compiled"][case] == before
    assert outputs["relinked"][case] == after
    assert outputs["verified"][case] == after


def test_only_the_classes_that_name_a_redirected_one_change(relinked):
    assert sorted(relinked) == ["host/Cases", "host/Sub", "host/X"]


def test_constants_are_only_appended_and_code_keeps_its_place(host, relinked):
    for name, data in relinked.items():
        before, after = ClassFile(host[name]), ClassFile(data)
        assert after.tags[: before.pool_count] == before.tags
        ends = [*(offset - 1 for offset in before.offsets[1:]), before.pool_end]
        for tag, begin, end in zip(before.tags[1:], before.offsets[1:], ends[1:], strict=True):
            assert tag == Tag.METHOD_HANDLE or data[begin:end] == host[name][begin:end]
        shift = after.pool_end - before.pool_end
        assert len(data) == len(host[name]) + shift
        old, new = before.data[before.pool_end :], after.data[after.pool_end :]
        # What differs is operands: opcodes stay, and every changed byte lies in a Code attribute.
        spans = [after.code_span(method) for method in after.methods]
        for position, (one, other) in enumerate(zip(old, new, strict=True), after.pool_end):
            assert one == other or any(start < position < end for start, end in spans)


def test_relinking_twice_changes_nothing_more(relinked):
    for data in relinked.values():
        assert relink_class(data, CONSTRUCTORS, STATICS) is None


def test_a_class_that_only_mentions_the_name_is_left_alone(host):
    assert b"host/X" in host["host/Untouched"]
    assert relink_class(host["host/Untouched"], CONSTRUCTORS, STATICS) is None
    assert relink_class(host["host/Cases"], {"no/Such": "ours/Such"}, {}) is None


def test_every_truncation_is_refused_by_name(host):
    data = host["host/Sub"]
    for length in range(len(data)):
        prefix = data[:length]
        if b"host/X" in prefix:
            with pytest.raises(BridgeError, match="host/Sub"):
                relink_class(prefix, CONSTRUCTORS, STATICS, label="host/Sub")
        else:
            assert relink_class(prefix, CONSTRUCTORS, STATICS) is None


def test_no_single_changed_byte_escapes_as_another_error(host):
    data = host["host/X"]
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 0xFF
        try:
            relink_class(bytes(changed), CONSTRUCTORS, STATICS)
        except BridgeError as error:
            assert "Java class" in str(error)  # noqa: PT017 - not every change must be refused


def test_a_constructor_call_without_its_new_is_refused(host):
    data = host["host/X"]
    parsed = ClassFile(data)
    (copy,) = (method for method in parsed.methods if method.name == "copy")
    start, _ = parsed.code_span(copy)
    headless = data[:start] + bytes(4) + data[start + 4 :]  # nops for `new` and `dup`
    with pytest.raises(BridgeError, match=r"host/X: copy constructs a host/X"):
        relink_class(headless, CONSTRUCTORS, {})


def test_a_full_constant_pool_is_an_error(host):
    data = host["host/Sub"]
    parsed = ClassFile(data)

    def padded(count):
        padding = b"\x01\0\0" * (count - parsed.pool_count)
        body = data[10 : parsed.pool_end] + padding + data[parsed.pool_end :]
        return data[:8] + count.to_bytes(2, "big") + body

    # Sub needs a name, a class and two constructors.
    assert ClassFile(relink_class(padded(65531), CONSTRUCTORS, {})).pool_count == 65535
    with pytest.raises(BridgeError, match=r"host/Sub.*65536"):
        relink_class(padded(65532), CONSTRUCTORS, {})


def test_folders_and_jars_give_the_same_classes(compiled, tmp_path):
    jar = tmp_path / "host.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in reversed([*iter_class_files(compiled)]):
            archive.writestr(f"{name[0]}.class", name[1])
        archive.writestr("META-INF/versions/17/host/X.class", b"another version")
        archive.writestr("module-info.class", b"no class")
        archive.writestr("images/icon.png", b"no class")
    from_jar = [*iter_class_files(jar)]
    assert from_jar == [*iter_class_files(compiled)]
    assert [name for name, _ in from_jar] == sorted(name for name, _ in from_jar)
    assert relink(jar, CONSTRUCTORS, {}) == relink(compiled, CONSTRUCTORS, {})


def test_unreadable_locations_are_named(tmp_path):
    broken = tmp_path / "broken.jar"
    broken.write_bytes(b"PK\3\4 not a jar")
    for location in (broken, tmp_path / "missing"):
        with pytest.raises(BridgeError, match=re.escape(str(location))):
            relink(location, CONSTRUCTORS, {})


def test_a_malformed_class_in_a_folder_is_named(tmp_path):
    write_classes(tmp_path, {"host/Broken": b"\xca\xfe\xba\xbe host/X"})
    with pytest.raises(BridgeError, match="host/Broken"):
        relink(tmp_path, CONSTRUCTORS, {})


CHECKERS = ("DTMCModelChecker", "CTMCModelChecker", "MDPModelChecker")
LOADER = """
    import explicit.StateModelChecker;
    public class Loader {
        public static void main(String[] names) throws Throwable {
            // Asking for its methods links a class, which verifies it, but does not initialise it.
            for (String name : names)
                Class.forName(name, false, Loader.class.getClassLoader()).getDeclaredMethods();
            prism.Prism checker = new prism.Prism(new prism.PrismDevNullLog());
            for (String type : new String[] {"DTMC", "CTMC", "MDP"})
                System.out.println(StateModelChecker.createModelChecker(
                    prism.ModelType.valueOf(type), checker).getClass().getName());
        }
    }"""


@pytest.mark.prism
def test_all_of_prism_is_relinked_and_verified(prism_install, tmp_path):
    targets = {f"explicit/{name}": f"prismgpu/{name}" for name in CHECKERS}
    changed = relink(prism_install.class_location, targets, {})
    # Some thirty statements in some fifteen classes; few or very many would mean a misreading.
    assert 3 < len(changed) < 60
    for name, data in changed.items():
        parsed = ClassFile(data)
        assert parsed.name == name
        assert any([*parsed.instructions(*parsed.code_span(m))] for m in parsed.methods)
    sources = {
        f"prismgpu/{name}.java": f"""package prismgpu;
            public class {name} extends explicit.{name} {{
                public {name}(prism.PrismComponent parent) throws prism.PrismException {{
                    super(parent);
                }}
            }}"""
        for name in CHECKERS
    }
    classpath = (prism_install.class_location, *prism_install.classpath)
    ours = compile_java(tmp_path, sources | {"Loader.java": LOADER}, classpath)
    first = write_classes(tmp_path / "relinked", changed)
    printed = run_java(
        (first, ours, *classpath),
        "Loader",
        *(name.replace("/", ".") for name in changed),
        options=("-Xverify:all", f"-Djava.library.path={prism_install.library_path}"),
    )
    assert printed.split() == [f"prismgpu.{name}" for name in CHECKERS]
