// NAND multiplexing: a reliable gate, made of bundles of wires and of unreliable gates.
//
// Each stage has N gates. Each of these takes a wire of either input bundle, which are paired at
// random, and its output may be inverted by a fault. The first stage computes; each restorative stage
// is two stages more, which bring the wires of the bundle together again. The gates are followed one
// by one: all that counts of a bundle is how many of its wires carry a 1.
//
// Source: G. Norman, D. Parker, M. Kwiatkowska, S. Shukla, Evaluating the reliability of NAND
// multiplexing with PRISM, IEEE Trans. Computer-Aided Design 24(10), 2005.

dtmc

const int N;                     // gates of a stage, and wires of a bundle
const int K;                     // restorative stages
const int stages = 2*K+1;

const double fault = 0.02;       // a gate inverts its output
const double stimulated = 0.9;   // a wire of the very first bundles carries a 1

module multiplexer

  stage : [1..stages] init 1;
  gates : [0..N] init 0;         // of this stage, done
  step  : [0..4] init 0;         // 0 next gate, 1 first input, 2 second input, 3 output, 4 end
  ones  : [0..N] init 0;         // outputs of this stage that carry a 1
  first  : [0..N] init 0;        // wires with a 1 that are yet to be a first input
  second : [0..N] init 0;        // the same for the second
  a : [0..1] init 0;
  b : [0..1] init 0;

  [] step=0 & gates<N                -> (step'=1);
  [] step=0 & gates=N & stage<stages -> (step'=1) & (stage'=stage+1) & (gates'=0) & (ones'=0)
                                        & (first'=ones) & (second'=ones);
  [] step=0 & gates=N & stage=stages -> (step'=4) & (first'=0) & (second'=0);

  // Of the two orders in which wires are taken, it is enough that one is random.
  [] step=1 & stage=1           -> stimulated:(step'=2)&(a'=1) + 1-stimulated:(step'=2);
  [] step=1 & stage>1 & first=0 -> (step'=2);
  [] step=1 & stage>1 & first>0 -> (step'=2)&(a'=1)&(first'=first-1);

  [] step=2 & stage=1            -> stimulated:(step'=3)&(b'=1) + 1-stimulated:(step'=3);
  [] step=2 & stage>1 & second=0 -> (step'=3);
  [] step=2 & stage>1 & second>0 & second<N-gates ->
       second/(N-gates):(step'=3)&(b'=1)&(second'=second-1) + 1-second/(N-gates):(step'=3);
  [] step=2 & stage>1 & second>0 & second=N-gates -> (step'=3)&(b'=1)&(second'=second-1);

  [] step=3 & gates<N & ones<N ->
       1-fault:(step'=0)&(gates'=gates+1)&(ones'=ones+1-a*b)&(a'=0)&(b'=0)
       + fault:(step'=0)&(gates'=gates+1)&(ones'=ones+a*b)&(a'=0)&(b'=0);

  [] step=4 -> true;

endmodule

// An odd number of stages turns a bundle of ones into one of zeros.
label "reliable" = step=4 & ones/N<0.1;

rewards "gates"
  step=3 : 1;
endrewards
