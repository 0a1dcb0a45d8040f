/** For packages of this repository; it can change in any version. */
export { isUnfinished } from './ports/transport.ts'
export { withTimeout } from './timeout.ts'
