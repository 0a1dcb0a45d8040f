/** For packages of this repository; it can change in any version. */
export { withTimeout } from './timeout.ts'
