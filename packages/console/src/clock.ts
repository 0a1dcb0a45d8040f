import { createStore, useStore } from './store.ts'

/** 5 s: ages under a minute change often enough, and a page with hundreds of times stays idle. */
const TICK_MS = 5_000

/** The current time, which the ages on the page use. */
const clock = createStore(Date.now())
setInterval(() => {
  if (!document.hidden) clock.set(Date.now())
}, TICK_MS)
document.addEventListener('visibilitychange', () => clock.set(Date.now()))

/** Returns the current time, epoch ms. Renders again every few seconds. */
export const useNow = (): number => useStore(clock)
