package prismgpu;

import settings.ChoiceSetting;
import settings.SettingEditor;
import settings.SettingOwner;
import settings.StringConstraint;

/** A setting of PRISM's that, where there are no windows, is set without an editor in one: that takes all of Swing. */
public final class WindowlessChoice extends ChoiceSetting
{
	public WindowlessChoice(String name, String[] values, String value, String comment, SettingOwner owner, boolean editableWhenMultiple)
	{
		super(name, values, value, comment, owner, editableWhenMultiple);
	}

	public WindowlessChoice(String name, String[] values, String value, String comment, SettingOwner owner, boolean editableWhenMultiple, StringConstraint constraint)
	{
		super(name, values, value, comment, owner, editableWhenMultiple, constraint);
	}

	@Override
	public SettingEditor getSettingEditor()
	{
		return Boolean.getBoolean("java.awt.headless") ? null : super.getSettingEditor();
	}
}
