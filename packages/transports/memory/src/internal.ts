/** For packages of this repository; it can change in any version. */
export { CAPABILITIES } from './capabilities.ts'
