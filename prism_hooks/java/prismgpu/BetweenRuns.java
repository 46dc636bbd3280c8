package prismgpu;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import jdd.SanityJDD;
import prism.Prism;
import prism.PrismException;
import prism.TileList;

/** Has each run of a process that makes several begin as a first one. */
public final class BetweenRuns
{
	/** Bytes that Java's own standard streams hold. */
	private static final int HELD = 128;

	/** How the static fields of our classes are put back to what they were before the first run. */
	private static final List<Reset> resets = new ArrayList<>();

	/** Threads that were there before the first run. */
	private static int threads;

	private interface Reset
	{
		void run() throws IllegalAccessException;
	}

	private BetweenRuns()
	{
	}

	/**
	 * Notes the state before the first run.
	 * @param names Our classes
	 */
	public static void keepFirstState(String[] names) throws ReflectiveOperationException
	{
		for (String name : names) {
			Class<?> type = Class.forName(name);
			if (type == BetweenRuns.class)
				continue;
			for (Field field : type.getDeclaredFields()) {
				if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic())
					keep(field);
			}
		}
	}

	private static void keep(Field field) throws IllegalAccessException
	{
		field.setAccessible(true);
		Object value = field.get(null);
		if (!Modifier.isFinal(field.getModifiers()))
			resets.add(() -> field.set(null, value));
		if (value instanceof Collection)
			keep((Collection<?>) value);
		else if (value instanceof Map)
			keep((Map<?, ?>) value);
	}

	private static <T> void keep(Collection<T> collection)
	{
		List<T> first = new ArrayList<>(collection);
		resets.add(() -> {
			if (collection.size() != first.size() || !first.equals(new ArrayList<>(collection))) {
				collection.clear();
				collection.addAll(first);
			}
		});
	}

	private static <K, V> void keep(Map<K, V> map)
	{
		Map<K, V> first = new LinkedHashMap<>(map);
		resets.add(() -> {
			if (!first.equals(map)) {
				map.clear();
				map.putAll(first);
			}
		});
	}

	/** Makes the standard streams anew, and puts what runs leave behind back to what it was at first. */
	public static void begin() throws IllegalAccessException, PrismException
	{
		System.setIn(new BufferedInputStream(new FileInputStream(FileDescriptor.in)));
		System.setOut(stream(FileDescriptor.out, "stdout.encoding"));
		System.setErr(stream(FileDescriptor.err, "stderr.encoding"));
		for (Reset reset : resets)
			reset.run();
		Prism.setWorkingDirectory(null);
		SanityJDD.enabled = false;
		TileList.clearStoredTileLists();
		if (threads == 0)
			threads = Launcher.threads();
	}

	private static PrintStream stream(FileDescriptor descriptor, String encoding)
	{
		String name = System.getProperty(encoding);
		Charset charset = name == null ? Charset.defaultCharset() : Charset.forName(name);
		return new PrintStream(new BufferedOutputStream(new FileOutputStream(descriptor), HELD), true, charset);
	}

	/** Whether no thread goes on that a run has started. */
	public static boolean isAlone()
	{
		return Launcher.threads() <= threads;
	}
}
