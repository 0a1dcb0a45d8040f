import { describe, expect, test } from 'vitest'
import { cycleFromReport, type ReportedFailure } from '../src/reported-failure.ts'
import { expectFast, ORDINARY } from './speed.ts'

const told: ReportedFailure = {
  type: 'java.lang.IllegalStateException',
  message: 'Listener failed',
  stack: [
    'org.springframework.kafka.ListenerException: Listener failed',
    '\tat org.springframework.kafka.Adapter.invoke(Adapter.java:1)',
    'Caused by: java.lang.RuntimeException: wrapped',
    '\tat com.acme.Wrapper.call(Wrapper.java:1)',
    'Caused by: java.lang.IllegalStateException: Order 42 is closed',
    '\tat java.base/java.util.Objects.check(Objects.java:1)',
    '\tat com.acme.Orders.change(Orders.java:7)',
    '\t... 12 more',
  ].join('\n'),
  at: 5,
  attempts: 3,
}

const record = (change: Partial<ReportedFailure> = {}) =>
  cycleFromReport({ ...told, ...change }).history[0]

describe('a failure reported by headers of another library', () => {
  test('is one record of a cycle', () => {
    const cycle = cycleFromReport(told)
    expect(cycle).toMatchObject({ attempts: 3, firstFailedAt: 5 })
    expect(cycle.history).toHaveLength(1)
    expect(record()).toMatchObject({ number: 3, at: 5, class: 'unknown' })
    expect(record({ attempts: 0, at: undefined })).toMatchObject({ number: 1, at: 0 })
  })

  test('counts as an attempt of an error', () => {
    expect(record({ type: undefined })).toMatchObject({ type: 'Error', counted: true })
  })

  test('has only its own message without a cause', () => {
    const stack =
      'com.acme.OrderClosed: Order 42 is closed\n\tat com.acme.Orders.change(Orders.java:7)'
    expect(record({ stack })?.message).toBe('Listener failed')
  })

  test('may have frames with another indentation', () => {
    const stack =
      'a.B: no\nCaused by: a.C: Order 42 is closed\n    at com.acme.Orders.change(O.java:1)'
    expect(record({ stack })?.message).toBe('Listener failed; caused by a.C: Order 42 is closed')
  })

  test('may have a cause without a type', () => {
    const stack =
      'a.B: no\nCaused by: (unknown): Order 42 is closed\n\tat com.acme.Orders.change(O.java:1)'
    expect(record({ stack })?.message).toContain('(unknown): Order 42 is closed')
  })

  test('has a frame in a stack with line ends of Windows', () => {
    const framed = (name: string) =>
      record({
        stack: `   at System.Collections.Get(String key)\r\n   at Sales.Orders.${name}(Order order)\r\n`,
      })
    expect(framed('Change')?.signature).not.toBe(framed('Cancel')?.signature)
  })

  test('has the same signature on every machine', () => {
    expect(record()?.signature).toBe('3-a232caf36376e3f2')
  })

  test('contains the last cause', () => {
    expect(record()?.message).toBe(
      'Listener failed; caused by java.lang.IllegalStateException: Order 42 is closed',
    )
  })

  test('is identified by its last cause and the frame of that cause', () => {
    const change = (from: string, to: string) => {
      const stack = told.stack?.replace(from, to)
      expect(stack).not.toBe(told.stack)
      return record({ stack })?.signature
    }
    const { signature } = record() ?? {}
    expect(change('Order 42', 'Order 43')).toBe(signature)
    expect(change('Orders.java:7', 'Orders.java:8')).toBe(signature)
    expect(change('Adapter.invoke', 'Other.invoke')).toBe(signature)
    expect(change('Wrapper.call', 'Other.call')).toBe(signature)
    expect(change('is closed', 'has no address')).not.toBe(signature)
    expect(change('Orders.change', 'Orders.cancel')).not.toBe(signature)
    expect(change('IllegalStateException: Order', 'Other: Order')).not.toBe(signature)
  })

  test('may have a cause without a message, or without frames', () => {
    const stack =
      'a.B: no\nCaused by: java.lang.NullPointerException\n\tat com.acme.Orders.change(O.java:1)'
    expect(record({ stack })?.message).toBe('Listener failed')
    const other = stack.replace('change', 'cancel')
    expect(record({ stack: other })?.signature).not.toBe(record({ stack })?.signature)
    expect(record({ stack: 'a.B: no\nCaused by: c.D: why' })?.message).toBe(
      'Listener failed; caused by c.D: why',
    )
  })

  test('keeps a cause of several lines', () => {
    const stack = 'a.B: no\nCaused by: c.D: one\n two\n\tat com.acme.Orders.change(O.java:1)'
    expect(record({ stack })?.message).toBe('Listener failed; caused by c.D: one\n two')
  })

  test('may have empty lines before its frames', () => {
    const stack = 'a.B: no\nCaused by: c.D: one\n\n\tat com.acme.Orders.change(O.java:1)'
    expect(record({ stack })?.message).toBe('Listener failed; caused by c.D: one')
  })

  test.each([
    ['line ends', '\n'],
    ['line ends of Windows', '\r\n'],
    ['spaces', ' '],
    ['indented lines', '\n '],
  ])('100 kB of %s in a stack take no time', (_, part) => {
    const stackOf = (text: string) => `a.B: no\nCaused by: c.D: why${text}`
    const hostile = stackOf(part.repeat(Math.ceil(100_000 / part.length)))
    expectFast(
      () => record({ stack: hostile }),
      () => record({ stack: stackOf(ORDINARY) }),
      20,
    )
  })

  test('is identified by its first frame when the stack has no head', () => {
    const dotnet = (method: string) =>
      record({ stack: `   at Acme.Labels.${method}(Parcel parcel)\n   at Acme.Handler.Handle()` })
    expect(dotnet('Print')?.signature).not.toBe(dotnet('Find')?.signature)
    expect(dotnet('Print')?.signature).toBe(dotnet('Print')?.signature)
  })

  test('may be empty', () => {
    const nothing = record({ type: undefined, message: undefined, stack: undefined })
    expect(nothing).toMatchObject({ message: 'no message', class: 'unknown' })
  })
})
