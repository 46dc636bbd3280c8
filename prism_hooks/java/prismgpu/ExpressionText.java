package prismgpu;

import java.util.List;

import parser.ast.Expression;
import parser.ast.ExpressionBinaryOp;
import parser.ast.ExpressionFormula;
import parser.ast.ExpressionFunc;
import parser.ast.ExpressionITE;
import parser.ast.ExpressionLabel;
import parser.ast.ExpressionLiteral;
import parser.ast.ExpressionUnaryOp;
import parser.ast.ExpressionVar;
import parser.type.Type;
import parser.type.TypeBool;
import parser.type.TypeDouble;
import parser.type.TypeInt;

/**
 * Expressions over a model's variables as text: JSON lists of words in postfix order, so that a reader
 * needs a stack and no recursion. Literals are JSON's, "v3" is the variable number 3, an operator is
 * PRISM's symbol, and a function its name, a colon and its number of operands.
 */
final class ExpressionText
{
	/** Why a construct has no text. */
	static final class Unwritable extends Exception
	{
		private static final long serialVersionUID = 1L;

		Unwritable(String construct)
		{
			super(construct, null, false, false);
		}
	}

	private static final String NEGATE = "neg";
	private static final String TO_DOUBLE = "double";
	private static final List<String> SPECIAL_LABELS = List.of("init", "deadlock");

	private final StringBuilder out;
	private boolean first = true;

	private ExpressionText(StringBuilder out)
	{
		this.out = out;
	}

	/** Appends an expression whose constants and labels have been replaced. */
	static void write(Expression expr, StringBuilder out) throws Unwritable
	{
		out.append('[');
		new ExpressionText(out).visit(expr);
		out.append(']');
	}

	private void visit(Expression expr) throws Unwritable
	{
		Type natural;
		if (expr instanceof ExpressionLiteral)
			natural = literal(((ExpressionLiteral) expr).getValue());
		else if (expr instanceof ExpressionVar)
			natural = variable((ExpressionVar) expr);
		else if (expr instanceof ExpressionUnaryOp)
			natural = unary((ExpressionUnaryOp) expr);
		else if (expr instanceof ExpressionBinaryOp)
			natural = binary((ExpressionBinaryOp) expr);
		else if (expr instanceof ExpressionITE)
			natural = conditional((ExpressionITE) expr);
		else if (expr instanceof ExpressionFunc)
			natural = function((ExpressionFunc) expr);
		else if (expr instanceof ExpressionFormula && ((ExpressionFormula) expr).getDefinition() != null)
			natural = defined(((ExpressionFormula) expr).getDefinition());
		else if (expr instanceof ExpressionLabel && SPECIAL_LABELS.contains(((ExpressionLabel) expr).getName()))
			natural = word("\"" + ((ExpressionLabel) expr).getName() + "\"", TypeBool.getInstance());
		else
			throw new Unwritable("an expression of the form " + expr);
		// PRISM's simplification takes x + 0.0 for an x that is a double, whatever x was declared as.
		if (expr.getType() instanceof TypeDouble && natural instanceof TypeInt)
			word("\"" + TO_DOUBLE + "\"", TypeDouble.getInstance());
	}

	/** What a property says by a formula's name. */
	private Type defined(Expression definition) throws Unwritable
	{
		visit(definition);
		return definition.getType();
	}

	private Type word(String word, Type type)
	{
		if (!first)
			out.append(',');
		first = false;
		out.append(word);
		return type;
	}

	private Type operator(String symbol, Expression expr)
	{
		return word("\"" + symbol + "\"", expr.getType());
	}

	private Type literal(Object value) throws Unwritable
	{
		if (value instanceof Boolean)
			return word(value.toString(), TypeBool.getInstance());
		if (value instanceof Integer)
			return word(value.toString(), TypeInt.getInstance());
		if (value instanceof Double)
			return word(value.toString(), TypeDouble.getInstance());
		throw new Unwritable("a literal of the form " + value);
	}

	private Type variable(ExpressionVar expr) throws Unwritable
	{
		if (expr.getIndex() < 0)
			throw new Unwritable("the variable " + expr.getName() + ", which is not the model's");
		// The type of the expression may be another than the variable's; see above.
		return word("\"v" + expr.getIndex() + "\"", expr.getType() instanceof TypeBool ? TypeBool.getInstance() : TypeInt.getInstance());
	}

	private Type unary(ExpressionUnaryOp expr) throws Unwritable
	{
		visit(expr.getOperand());
		switch (expr.getOperator()) {
		case ExpressionUnaryOp.NOT:
			return operator("!", expr);
		case ExpressionUnaryOp.MINUS:
			return operator(NEGATE, expr);
		case ExpressionUnaryOp.PARENTH:
			return expr.getOperand().getType();
		default:
			throw new Unwritable("the operator " + expr.getOperatorSymbol());
		}
	}

	private Type binary(ExpressionBinaryOp expr) throws Unwritable
	{
		visit(expr.getOperand1());
		visit(expr.getOperand2());
		int operator = expr.getOperator();
		if (operator == ExpressionBinaryOp.POW)
			return operator("pow:2", expr);
		Type type = operator(expr.getOperatorSymbol(), expr);
		boolean exact = operator == ExpressionBinaryOp.PLUS || operator == ExpressionBinaryOp.MINUS || operator == ExpressionBinaryOp.TIMES;
		boolean ints = expr.getOperand1().getType() instanceof TypeInt && expr.getOperand2().getType() instanceof TypeInt;
		return exact && ints ? TypeInt.getInstance() : type;
	}

	private Type conditional(ExpressionITE expr) throws Unwritable
	{
		visit(expr.getOperand1());
		visit(expr.getOperand2());
		visit(expr.getOperand3());
		return operator("?", expr);
	}

	private Type function(ExpressionFunc expr) throws Unwritable
	{
		int code = expr.getNameCode();
		if (code < ExpressionFunc.MIN || code > ExpressionFunc.LOG)
			throw new Unwritable("the function " + expr.getName());
		for (int i = 0; i < expr.getNumOperands(); i++)
			visit(expr.getOperand(i));
		return operator(ExpressionFunc.names[code] + ":" + expr.getNumOperands(), expr);
	}
}
