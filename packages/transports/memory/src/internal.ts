/** Exports for packages of this repository. They can change in any version. */
export { CAPABILITIES } from './capabilities.ts'
