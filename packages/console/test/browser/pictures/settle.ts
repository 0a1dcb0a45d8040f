import type { Page } from 'playwright-core'

/**
 * Makes a page look the same in each run: digits become 0, and so do the letters of ids. Dates lose their day. Charts of the
 * last hours are hidden, because their bars begin at a full minute.
 */
export const settle = (page: Page): Promise<void> => page.evaluate(settleHere)

/** Runs in the page, so it uses nothing from this file. */
function settleHere(): void {
  const RULES: readonly (readonly [RegExp, (found: string) => string])[] = [
    [
      /\d{1,2}\s(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:\s\d{4})?(?:,?\s(?=\d))?/g,
      () => '',
    ],
    [/\b(?=[a-f]*\d)[0-9a-f]{4,}\b/g, (id) => '0'.repeat(id.length)],
    [/\d/g, () => '0'],
    // Ages next to a limit, such as 59 s and 1 min, or 9 min and 10 min.
    [/\b0+\s(?:s|min|h|d)\b(?:\s0+\smin\b)?/g, () => '00\u00A0min'],
  ]
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const before = node.textContent ?? ''
    const text = RULES.reduce((one, [pattern, become]) => one.replace(pattern, become), before)
    if (text !== before) node.textContent = text
  }
  const charts = document.querySelectorAll<SVGElement>('.bar-chart svg, .sparkline')
  for (const { style } of charts) style.visibility = 'hidden'
}
