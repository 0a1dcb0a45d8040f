import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { normaliseMessage } from '../src/normalise.ts'

const GOLDEN = fileURLToPath(new URL('./golden/signature-rules-3.txt', import.meta.url))

/** A message, the text that groups compare, and the keywords that they compare when a code or a frame is known. */
const ruleOf = (message: string): string =>
  [message, `  ${normaliseMessage(message)}`, `  ${normaliseMessage(message, true)}`]
    .map((line) => line.replaceAll('\n', String.raw`\n`))
    .join('\n')

// Stored dead letters keep the signature of their version. A change of a rule without a new version would put
// failures with one cause into two groups.
it('gives each message the text of version 3', async () => {
  const stored = readFileSync(GOLDEN, 'utf8').split('\n')
  const messages = stored.filter((line) => line !== '' && !line.startsWith('  '))
  const rules = messages.map((line) => ruleOf(line.replaceAll(String.raw`\n`, '\n')))
  await expect(`${rules.join('\n')}\n`).toMatchFileSnapshot(GOLDEN)
  expect(messages.length).toBeGreaterThan(800)
})
