package prismgpu;

/** LU factors of a small dense matrix, to the last bit those of engines/linear/dense.py. */
public final class DenseLoops
{
	private final int size;
	/** Both factors, row by row; the lower one has ones on its diagonal. */
	private final double[] both;
	/** The given row that each row is. */
	private final int[] order;
	/** The row that each row is kept at, so that none need be moved. */
	private final int[] at;

	/** @param matrix Row by row; it is overwritten */
	public DenseLoops(int size, double[] matrix)
	{
		this.size = size;
		both = matrix;
		order = new int[size];
		at = new int[size];
		for (int row = 0; row < size; row++)
			order[row] = at[row] = row;
	}

	/** Computes the factors; false where the matrix is singular. */
	public boolean factorise()
	{
		for (int k = 0; k < size; k++) {
			int pivot = k;
			double largest = -1.0;
			for (int row = k; row < size; row++) {
				double entry = Math.abs(both[at[row] * size + k]);
				if (entry > largest) {
					largest = entry;
					pivot = row;
				}
			}
			if (!(largest > 0.0))
				return false;
			int moved = at[k];
			at[k] = at[pivot];
			at[pivot] = moved;
			moved = order[k];
			order[k] = order[pivot];
			order[pivot] = moved;
			for (int row = k + 1; row < size; row++) {
				if (both[at[row] * size + k] != 0.0)
					eliminate(at[row] * size, at[k] * size, k);
			}
		}
		return true;
	}

	private void eliminate(int row, int above, int k)
	{
		double[] both = this.both;
		double factor = both[row + k] / both[above + k];
		both[row + k] = factor;
		for (int column = k + 1; column < size; column++)
			both[row + column] -= factor * both[above + column];
	}

	/** Returns x with A x = b. */
	public double[] solve(double[] right)
	{
		double[] x = new double[size];
		for (int row = 0; row < size; row++) {
			double value = right[order[row]];
			for (int column = 0; column < row; column++)
				value -= both[at[row] * size + column] * x[column];
			x[row] = value;
		}
		for (int row = size - 1; row >= 0; row--) {
			double value = x[row];
			for (int column = size - 1; column > row; column--)
				value -= both[at[row] * size + column] * x[column];
			x[row] = value / both[at[row] * size + row];
		}
		return x;
	}
}
