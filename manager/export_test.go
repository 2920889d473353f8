package manager

// Receive passes a hint to a Manager as a listener does.
var Receive = (*Manager).receive
