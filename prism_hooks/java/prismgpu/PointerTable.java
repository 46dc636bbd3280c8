package prismgpu;

import java.util.Arrays;

/** Numbers for native pointers, in the order in which they come, by open addressing: no object an entry. */
final class PointerTable
{
	private static final int LARGEST = 1 << 30;
	/** 2^64 over the golden ratio: a multiplication by it spreads pointers, whose low bits are equal. */
	private static final long SPREAD = 0x9E3779B97F4A7C15L;

	/** The pointers by their numbers. */
	private long[] pointers;
	/** Numbers, from 1 on; 0 for a free place. At most two thirds are taken. */
	private int[] places;
	private int size;

	/** @param expected How many pointers there may be before the table has to grow */
	PointerTable(int expected)
	{
		pointers = new long[Math.max(16, expected)];
		places = new int[placesFor(pointers.length)];
	}

	private static int placesFor(int pointers)
	{
		long least = 16;
		while (2 * least < 3L * pointers)
			least *= 2;
		return (int) Math.min(least, LARGEST);
	}

	int size()
	{
		return size;
	}

	long pointer(int number)
	{
		return pointers[number];
	}

	/** The number of a pointer; that of one which is new is the size before. */
	int number(long pointer)
	{
		int last = places.length - 1;
		int place = (int) (pointer * SPREAD >>> 32 + Integer.numberOfLeadingZeros(last));
		for (; places[place] != 0; place = place + 1 & last)
			if (pointers[places[place] - 1] == pointer)
				return places[place] - 1;
		if (size == pointers.length) {
			grow();
			return number(pointer);
		}
		pointers[size] = pointer;
		places[place] = ++size;
		return size - 1;
	}

	/** Forgets all pointers. */
	void clear()
	{
		size = 0;
		Arrays.fill(places, 0);
	}

	private void grow()
	{
		if (size >= LARGEST / 2)
			throw new OutOfMemoryError("a diagram of more than " + size + " nodes");
		int known = size;
		pointers = Arrays.copyOf(pointers, 2 * size);
		places = new int[placesFor(pointers.length)];
		size = 0;
		for (int i = 0; i < known; i++)
			number(pointers[i]);
	}
}
