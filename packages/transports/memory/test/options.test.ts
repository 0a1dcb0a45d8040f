import { describe, expect, it } from 'vitest'
import { MemoryBroker, memory, memorySink, memorySource } from '../src/index.ts'

describe('the options of the memory transport', () => {
  it.each([
    ['memory()', memory],
    ['memorySource()', memorySource],
    ['memorySink()', memorySink],
  ])('of %s are reported together', (call, create) => {
    const options = { broker: {}, queue: undefined, connect: 1, capabilities: 'all', queues: 2 }
    expect(() => create(options as never)).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: [
          `The options of ${call} are invalid:`,
          'broker: expected a broker such as new MemoryBroker(), got an object',
          'connect: expected a function, got 1',
          'queue: expected the name of a queue, got undefined',
          "capabilities: expected an object of capabilities, got 'all'",
          'queues: unknown option; known options: broker, capabilities, connect, queue',
        ].join('\n- '),
      }),
    )
    expect(() => create({ broker: new MemoryBroker(), queue: '' })).toThrow(
      "queue: expected the name of a queue, got ''",
    )
  })
})
