import { contractOf, WORLDS } from './contract.ts'

// The scenarios in which a transaction replaces the hand-off of the plain mode. contract-transactions.proof.ts plays all
// others every night.
await contractOf(WORLDS.transactions, {
  only: [
    'success settles',
    'enacting twice has one effect',
    'a dead letter keeps bytes, headers, key, source and history',
    'a replay published twice takes effect once',
    'a hand-off whose response is lost is repeated without more copies than declared',
    'close while a hand-off is blocked keeps the message',
    'attempt history survives a process crash',
    'a crash between publish and acknowledge duplicates under the same id, and loses nothing',
    'a crash right after a hand-off began loses nothing',
    'a copy that is not confirmed keeps the original',
    'a crash loop among 100 innocent messages quarantines only the poison',
  ],
})
