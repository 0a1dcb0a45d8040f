/**
 * `setImmediate` for the virtual clock of the simulator: runs the callback after all promise continuations. Browsers
 * delay nested timers by 4 ms, but not messages.
 */
const waiting: (() => void)[] = []
const { port1, port2 } = new MessageChannel()
port1.onmessage = () => waiting.shift()?.()

Object.assign(globalThis, {
  setImmediate: (callback: () => void) => {
    waiting.push(callback)
    port2.postMessage(undefined)
  },
})
