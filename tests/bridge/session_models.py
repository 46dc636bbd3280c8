"""Models of PRISM's own, of each kind, that are read out of its diagrams."""

MODELS = [
    ("simple/dice/dice.pm", ""),
    ("simple/dice/two_dice.nm", ""),
    ("dtmcs/herman/herman7.pm", ""),
    ("dtmcs/herman/herman11.pm", ""),
    ("dtmcs/brp/brp.pm", "N=16,MAX=3"),
    ("dtmcs/brp/brp.pm", "N=64,MAX=5"),
    ("dtmcs/leader_sync/leader3_4.pm", ""),
    ("dtmcs/leader_sync/leader4_3.pm", ""),
    ("ctmcs/cluster/cluster.sm", "N=4"),
    ("ctmcs/cluster/cluster.sm", "N=32"),
    ("ctmcs/tandem/tandem.sm", "c=15"),
    ("ctmcs/tandem/tandem.sm", "c=255"),
    ("ctmcs/kanban/kanban.sm", "t=2"),
    ("ctmcs/fms/fms.sm", "n=2"),
    ("ctmcs/polling/poll5.sm", ""),
    ("ctmcs/polling/poll10.sm", ""),
    ("ctmcs/embedded/embedded.sm", "MAX_COUNT=4"),
    ("ctmcs/cell/cell.sm", "N=20"),
    ("ctmcs/peer2peer/peer2peer4_4.sm", ""),
    ("mdps/consensus/coin2.nm", "K=2"),
    ("mdps/consensus/coin4.nm", "K=2"),
    ("mdps/csma/csma2_2.nm", ""),
    ("mdps/wlan/wlan0.nm", "TRANS_TIME_MAX=10"),
    ("mdps/firewire/impl/firewire.nm", "delay=3,fast=0.5"),
    ("mdps/dining_crypt/dining_crypt3.nm", ""),
    ("mdps/phil/nofair/phil-nofair3.nm", ""),
    ("mdps/zeroconf/zeroconf.nm", "N=20,K=2,reset=true,err=0.1"),
    ("mdps/leader_async/leader4.nm", ""),
    ("mdps/mutual/mutual3.nm", ""),
    ("mdps/phil_lss/phil_lss3.nm", "K=2"),
    ("mdps/rabin/rabin3.nm", ""),
]
"""Files below PRISM's folder of examples, and constants."""

QUICK = {
    ("simple/dice/two_dice.nm", ""),
    ("dtmcs/herman/herman7.pm", ""),
    ("ctmcs/cluster/cluster.sm", "N=4"),
    ("ctmcs/tandem/tandem.sm", "c=15"),
    ("mdps/consensus/coin2.nm", "K=2"),
    ("mdps/zeroconf/zeroconf.nm", "N=20,K=2,reset=true,err=0.1"),
}

MDP_WITH_REWARDS = """mdp
module walk
  s : [0..3] init 0;
  [left] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [right] s=0 -> (s'=3);
  [right] s=2 -> 0.25:(s'=0) + 0.75:(s'=3);
  [] s>0 -> true;
endmodule
label "goal" = mod(s,2)=1;
rewards "cost"
  s=0 : 2;
  [right] true : 5;
  [] s=3 : 0.1;
endrewards
"""
