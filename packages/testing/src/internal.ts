/** Exports for packages of this repository. They can change in any version. */
export { type MemoryWorld, type MemoryWorldOptions, memoryFixture } from './memory-world.ts'
