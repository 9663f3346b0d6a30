package match

// What was changed by hand in this package, and the test that fails then:
//
//	a grab holds no slot                                TestQuestionsAreRepeated, check
//	a refused grab keeps its slot                       TestSlotsOfDoublesAreReused
//	a grab of what runs already frees its slot          TestRefusedDoubleFreesNothing (R71: domain life)
//	doubles are grabbed, or stored                      TestRandom, TestIdleShardSleeps
//	a refusal always, or never, passes                  TestRefusedGrabMayComeAgain
//	direct ignores what is being stored                 TestDirectDoesNotPassWhatIsStored (R71)
//	direct ignores the table, limits, tables down       TestDirectWaitsItsTurn, TestQuestionsAreRepeated, TestR8OneDomainFails
//	what was taken without a slot is granted            TestTakenWithoutSlotGoesBack (R71: missing booking)
//	Freed is not reported, or reported without cause            TestLineIsKept, TestLineBehindADeadShard (R71)
//	Restore is not sent, sent too often, not heard      TestR32LostSlotsAreRestored (R71: quarantine)
//	no audit after adopting, of unbooked, while full    TestAttemptThatEndedMeanwhileIsAudited (R71: second diff), TestR38NewLimitCountsWhatRuns, TestLostReleaseIsAudited
//	an audit frees the undecided, the new               TestAuditSparesWhatIsNew
//	an audit frees those of other partitions            TestR38NewLimitCountsWhatRuns
//	attempts that run, or grabs under way, not adopted  TestLimitOfUnknownDomain, TestR38NewLimitCountsWhatRuns
//	slots are reported before all partitions have answered  TestRandom, TestTakeoverWaitsForAllBookings
//	questions, or grabs, before the fence               TestFenceComesFirst
//	the slot of an undecided grab is free               TestUndecidedGrabHoldsItsSlot (R71: released unanswered)
//	no budget, no detaching, nothing comes back         TestR31SilentPartitionHasABudget, TestR31PollWaitsForOthers
//	triggers past the bound are not asked for           TestR31AsideIsBounded
//	batches are not repeated                            TestFenceComesFirst
//	a late grant is dropped, or exceeds what was asked  TestRandom, TestR31NoMoreThanAskedFor
//	an answer waits for all grabs                       TestGatheredGrabOfAnsweredPoll
//	delivered at once, though bounced, or never alone   TestQuestionsAreRepeated, TestRandom, TestDeliveredIsTold
//	bounced, or a refused hand-back, is forgotten       TestRandom, TestHandBackIsRepeated
//	answered polls stay                                 TestR37AnsweredPollsAreForgotten
//	a poll that comes back stands last                  TestRefusedPollKeepsItsPlace
//	a lost outcome is not healed                        TestR36LostOutcomeHeals
//	what is let go of is not asked for, or comes again  TestHeldChunksAreBounded, TestR35NothingIsLostWithoutTables
//	what is freed during a call is forgotten            TestFreedDuringACall, TestRandom
//	free slots are not reported; no refresh; no line        TestLineIsKept, TestEntriesAreKeptFresh
//	one slot too few is reported                            TestLimitOfUnknownDomain
//	a release for a domain not known is ignored         TestLateReleaseLowersAnEntry
//	releases are counted after booking                  TestReleaseIsCountedInItsTurn
//	nothing is sent again, or open too early, or never  TestR41GrantsAreSentAgain
//	fenced is ignored                                   TestOvertakenStops
//	a drain stores nothing, or hands nothing back       TestDrain
//	hungry only for empty tables                        TestR36HungryPerPoll
//	what was stored is not known                        TestQuestionsAreRepeated
//	answers without bound, JSON as large                TestAnswersAreBounded
//	polls try forever, or not once more                TestExpiredPollWaitsForVerdicts, TestPollWithoutTimeLooksOnce
//	two calls of a domain at once                       call, in world_test.go
//	a question is not repeated, or a second one missed  TestQuestionsAreRepeated, TestRetriggersAreJoined
//	a raised limit is not tried, a dropped one not reported TestLimitIsRaisedAndLowered, TestEntriesAreKeptFresh
//	nothing is forgotten                                TestLimitOfUnknownDomain, checkEmpty
//	a slow partition is silent                          TestSlowIsNotSilent
