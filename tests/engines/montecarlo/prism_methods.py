"""Real PRISM's simulation methods, fed answers that are known: one line a case, one line back."""

from __future__ import annotations

import os
import subprocess

SOURCE = """
import java.util.*;
import parser.ast.*;
import prism.*;
import simulator.*;
import simulator.method.*;
import simulator.sampler.*;

public class MethodOracle {
    static class Bits extends SamplerBoolean {
        public boolean update(Path path, ModelGenerator generator) { return true; }
        void take(String word) { value = word.equals("1"); updateStats(); }
    }
    static class Rewards extends SamplerDouble {
        public boolean update(Path path, ModelGenerator generator) { return true; }
        void take(String word) { value = Double.parseDouble(word); updateStats(); }
    }
    static SimulationMethod method(String[] w) {
        double a = w.length > 1 ? Double.parseDouble(w[1]) : 0;
        double b = w.length > 2 ? Double.parseDouble(w[2]) : 0;
        double c = w.length > 3 ? Double.parseDouble(w[3]) : 0;
        switch (w[0]) {
        case "CIwidth": return new CIwidth(a, (int) b);
        case "CIconfidence": return new CIconfidence(a, (int) b);
        case "CIiterations": return new CIiterations(a, b);
        case "CIiterationsReward": return new CIiterations(a, b, c);
        case "CIiterationsManual": return new CIiterations(a, b, (int) c);
        case "ACIwidth": return new ACIwidth(a, (int) b);
        case "ACIconfidence": return new ACIconfidence(a, (int) b);
        case "ACIiterations": return new ACIiterations(a, b);
        case "ACIiterationsReward": return new ACIiterations(a, b, c);
        case "ACIiterationsManual": return new ACIiterations(a, b, (int) c);
        case "APMCapproximation": return new APMCapproximation(a, (int) b);
        case "APMCconfidence": return new APMCconfidence(a, (int) b);
        case "APMCiterations": return new APMCiterations(a, b);
        default: return new SPRTMethod(a, b, c);
        }
    }
    static String answer(String line) {
        String[] parts = line.split("\\\\|");
        try {
            SimulationMethod method = method(parts[0].trim().split(" "));
            boolean reward = parts[2].trim().equals("R");
            String[] bound = parts[1].trim().split(" ");
            ExpressionQuant operator = reward ? new ExpressionReward() : new ExpressionProb();
            operator.setRelOp(RelOp.parseSymbol(bound[0]));
            if (bound.length > 1)
                operator.setBound(Expression.Double(Double.parseDouble(bound[1])));
            method.computeMissingParameterBeforeSim();
            String before = method.getParametersString();
            method.setExpression(operator);
            Sampler sampler = reward ? new Rewards() : new Bits();
            sampler.resetStats();
            String[] words = parts[3].trim().split(" ");
            int n = 0;
            while (!method.shouldStopNow(n, sampler)) {
                if (n == words.length) return n + "#" + before + "#never";
                String word = words[n++];
                if (reward) ((Rewards) sampler).take(word); else ((Bits) sampler).take(word);
            }
            method.computeMissingParameterAfterSim();
            String after = method.getParametersString();
            String result;
            try {
                Result r = new Result(method.getResult(sampler));
                r.setAccuracy(method.getResultAccuracy(sampler));
                result = r.getResultAndAccuracy();
            } catch (PrismException e) { result = "error: " + e.getMessage(); }
            String why = method.getResultExplanation(sampler);
            return n + "#" + before + "#" + after + "#" + result + "#" + why;
        } catch (PrismException e) { return "error: " + e.getMessage(); }
    }
    public static void main(String[] arguments) {
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) System.out.println(answer(in.nextLine()));
    }
}
"""


def prism_answers(install, java, folder, lines):
    """Return PRISM's answer to each case.

    Each answer is a list: the paths used, the parameters before and after, the result with its
    accuracy and the explanation; or one text, the error.
    """
    source = folder / "MethodOracle.java"
    source.write_text(SOURCE)
    classpath = os.pathsep.join(map(str, install.classpath))
    done = subprocess.run(
        [str(java.home / "bin" / "java"), "-cp", classpath, str(source)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [line.split("#") for line in done.stdout.splitlines()]
