/** For packages of this repository; it can change in any version. */
export { type MemoryWorld, type MemoryWorldOptions, memoryFixture } from './memory-world.ts'
