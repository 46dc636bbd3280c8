package prismgpu;

/** The rewards of a structure where the engines hold them: an array crosses when it is asked for. */
public interface HeldRewards
{
	/** Of a chain with the rewards of transitions, by their probabilities or rates. */
	double[] ofStates();

	/** For each choice of an MDP; null where choices earn nothing. */
	double[] ofChoices();
}
