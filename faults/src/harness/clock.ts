import type { WrongClock } from './consumer-options.ts'

/**
 * Makes the wall clock of this process wrong. It is ahead or behind from the start, and then it
 * jumps. Monotonic clocks are not changed.
 */
export function tamper({ aheadMs, jumpMs, everyMs }: WrongClock): void {
  const trueNow = Date.now
  const TrueDate = Date
  let offMs = aheadMs
  setInterval(() => {
    offMs = offMs === aheadMs ? aheadMs + jumpMs : aheadMs
  }, everyMs).unref()
  const now = () => trueNow() + offMs
  globalThis.Date = new Proxy(TrueDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
    apply: () => new TrueDate(now()).toString(),
    get: (target, key, receiver) =>
      key === 'now' ? now : (Reflect.get(target, key, receiver) as unknown),
  })
  // Read once at the start: the time at which the process believes it started.
  const timeOrigin = performance.timeOrigin + aheadMs
  Object.defineProperty(performance, 'timeOrigin', { get: () => timeOrigin })
}
