import type { Page } from 'playwright-core'

/** 2 s: the shortest wait between two polls. */
const STEP_MS = 2_000

/** Requests of a page, and how many of them are in flight. Streams are not counted, because they stay open. */
export function watchRequests(page: Page) {
  const flying = new Set<unknown>()
  let count = 0
  const isPoll = (url: string) => url.includes('/api/v1/') && !url.endsWith('/events')
  page.on('request', (request) => {
    if (!isPoll(request.url())) return
    count += 1
    flying.add(request)
  })
  page.on('requestfinished', (request) => flying.delete(request))
  page.on('requestfailed', (request) => flying.delete(request))
  return { count: () => count, isQuiet: () => flying.size === 0 }
}

export type Requests = ReturnType<typeof watchRequests>

/** Lets the time of the page pass in steps, and waits for the responses of each. Call `page.clock.install()` before. */
export async function pass(page: Page, requests: Requests, durationMs: number): Promise<void> {
  for (let left = durationMs; left > 0; left -= STEP_MS) {
    await page.clock.runFor(STEP_MS)
    // A task of the page: the response of a poll starts the wait for the next one.
    do
      await page.evaluate(
        'new Promise((resolve) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = resolve; port2.postMessage(0) })',
      )
    while (!requests.isQuiet())
  }
}

/** Stops the clock of the page. From here, only `pass` moves it. */
export async function stopClock(page: Page): Promise<void> {
  await page.clock.pauseAt(((await page.evaluate('Date.now()')) as number) + 1_000)
}
