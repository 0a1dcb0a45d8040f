/**
 * `pnpm words` counts phrases that make text hard to read, and `pnpm words W07` lists the hits of one pattern. A
 * report, not a gate: a hit is a reason to read the sentence again.
 */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, ROOT } from './workspace.ts'

interface Pattern {
  readonly id: string
  readonly text: RegExp
  /** What to write instead. */
  readonly instead: string
}

const PARTICIPLES =
  'Found|Told|Ended|Tried|Held|Taken|Looked|Begun|Known|Placed|Sent|Asked|Lately|Seen|Ending|Shown|Refused|Stalled|Examined|Answered|Borrowed|Sourced|Valued|Made'

// biome-ignore format: one row per pattern, to be read as a table
export const PATTERNS: readonly Pattern[] = [
  { id: 'W01', text: /\b(for|of|to|by|from|with|than|as) who(ever)?\b/g, instead: 'the role' },
  { id: 'W02', text: /\b[Ww]hoever\b|\bWho (may|asks|has|runs|approves|would|lacks)\b/g, instead: 'the role' },
  { id: 'W03', text: /([.:;] |^|\*\* |\/\/ |')What (is|was|are|were|has|they|it|a|the|people|comes|goes|fails|waits)\b/gm, instead: 'a noun as subject' },
  { id: 'W04', text: /\b(is|are|was|were|be|been) (told|said|heard)\b/g, instead: 'reported, logged' },
  { id: 'W05', text: /\b[Ss]ays? (what|which|who|whether|why|how|where|no|yes|so|that|when)\b/g, instead: 'lists, describes' },
  { id: 'W06', text: /\b(tell|tells|telling)\b|\b(hear|hears|heard) of\b/g, instead: 'report, distinguish' },
  { id: 'W07', text: /\b([Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b/g, instead: 'no consumer, no user' },
  { id: 'W08', text: /\b[Ss]omeone\b/g, instead: 'a user, another process' },
  { id: 'W09', text: /\b(go|goes|going|went) (on|out)\b/g, instead: 'continue; publish' },
  { id: 'W10', text: /\bin (hand|our hands)\b/g, instead: 'in flight' },
  { id: 'W11', text: /\bso (many|long|often|much|few)\b/g, instead: 'the quantity' },
  { id: 'W12', text: /\b([Aa]ll|[Oo]nes?|[Tt]hose) (that|who|which)\b/g, instead: 'the noun' },
  { id: 'W13', text: /\bbeside\b/g, instead: 'next to, compared with' },
  { id: 'W14', text: /\bmoments?\b/g, instead: 'time, timestamp' },
  { id: 'W15', text: /\banew\b|\bfor ever\b|\bwhom\b|\bmeanwhile\b/g, instead: 'again, forever' },
  { id: 'W16', text: /\b[Ll]et(s|ting)? go\b|\b[Gg]iv(e|es|en|ing) (\w+ )?back\b/g, instead: 'release, return' },
  { id: 'W17', text: /\b[Aa]nswers (how|what|whether|the|its|false|true|undefined|which|with|a|it|in)\b/g, instead: 'returns' },
  { id: 'W18', text: /\b(is|are|was|were|be) asked\b/g, instead: 'requested, called' },
  { id: 'W19', text: /\bat once\b/g, instead: 'immediately; concurrently' },
  { id: 'W20', text: /\b(stand|stands|stood) (still|for|in for|before)\b/g, instead: 'stalls, replaces' },
  { id: 'W21', text: /\b(is|are|was|were) there\b/g, instead: 'exists' },
  { id: 'W22', text: /\bbecame of\b|\bcame of\b/g, instead: 'outcome' },
  { id: 'W23', text: /\b(of|on|by|with) (its|their|our) own\b|\bof (ours|yours|theirs|others)\b/g, instead: 'separate, of Redrive' },
  { id: 'W24', text: /\b(is|are) over\b|\bby (itself|themselves)\b/g, instead: 'ended; automatically' },
  { id: 'W25', text: /\/\*\* (As|Of|For|Said|Told|So|By|In|On|To|Without|Only|Never|Also|Like) /g, instead: 'a verb or noun first' },
  { id: 'W26', text: new RegExp(`\\b(interface|type|class) (${PARTICIPLES})\\b`, 'g'), instead: 'a noun' },
  { id: 'W27', text: /\binterface \w*Parts\b/g, instead: '…Options, …Deps' },
]

/** Generated, or a list of the patterns. */
const LEFT_OUT =
  /(^|\/)(api-report\.md|CHANGELOG\.md)$|\/golden\/|^docs\/reference\/|^dev\/check\/words\.ts$/

const tracked = (): readonly string[] =>
  execFileSync('git', ['ls-files', '*.ts', '*.md'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && !LEFT_OUT.test(path))

/** Words that an API summary may begin with. */
const VERB =
  /^(Get|List|Create|Update|Set|Delete|End|Count|Export|Stream|Add|Change|Discard|Restore|Approve|Pause|Resume|Cancel|Revoke|Plan|Enable|Explain|Acknowledge|Freeze|Merge|Move|Reopen|Request|Separate|Split)\b/
const MOST_WORDS = 25

/** Returns the sentences of the pages with more than 25 words, and the number of all sentences. */
export function longSentences(pages: readonly string[]): { long: readonly string[]; all: number } {
  const sentences = pages
    .map((page) => page.replaceAll(/```[\s\S]*?```|^\|.*$|^#.*$/gm, ''))
    .flatMap((page) => page.split(/(?<=[.!?])\s+|\n\n/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => wordsIn(sentence) > 2)
  return {
    long: sentences.filter((sentence) => wordsIn(sentence) > MOST_WORDS),
    all: sentences.length,
  }
}

const wordsIn = (text: string) => text.split(/\s+/).filter(Boolean).length

function main([id]: readonly string[]): void {
  const files = tracked().map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  if (id !== undefined) {
    const pattern = PATTERNS.find((one) => one.id === id)?.text
    for (const { path, text } of pattern === undefined ? [] : files) {
      for (const [index, line] of text.split('\n').entries()) {
        if (line.search(pattern as RegExp) >= 0) console.log(`${path}:${index + 1}: ${line.trim()}`)
      }
    }
    return
  }
  let total = 0
  for (const { id: name, text: pattern, instead } of PATTERNS) {
    const hits = files.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0)
    total += hits
    console.log(`${name} ${String(hits).padStart(5)}  write instead: ${instead}`)
  }
  const pages = globSync(['README.md', 'docs/**/*.md'], { cwd: ROOT }).filter(
    (path) => !LEFT_OUT.test(path),
  )
  const { long, all } = longSentences(pages.map((path) => readFileSync(join(ROOT, path), 'utf8')))
  const api = readFileSync(join(ROOT, 'packages/server/openapi.json'), 'utf8')
  const summaries = [...api.matchAll(/"summary": "([^"]+)/g)].map(([, summary = '']) => summary)
  console.log(`\n${total} hits`)
  console.log(
    `${long.length} of ${all} sentences in README and docs have more than ${MOST_WORDS} words`,
  )
  console.log(
    `${summaries.filter((summary) => !VERB.test(summary)).length} of ${summaries.length} API summaries do not begin with a verb`,
  )
}

if (isMain(import.meta)) main(process.argv.slice(2))
