export { deadLetter, drop, failedCycle, giveBack, quarantine, retryIn } from './decisions.ts'
export {
  createDatabase,
  dropDatabase,
  emptyDatabase,
  ignoreConnectionErrors,
  poolOn,
} from './postgres.ts'
export { ROOT, services, urlOf, urlsOf } from './services.ts'
