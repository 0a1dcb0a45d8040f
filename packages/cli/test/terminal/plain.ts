/** Returns a fixed age of the same width, so that columns do not move. */
const sameWidth = (age: string): string => '9 s'.padStart(age.length)

/** Texts that differ between two runs, and their replacement in the golden file. As few as possible. */
const DIFFERS: readonly (readonly [RegExp, string | ((found: string) => string)])[] = [
  [/127\.0\.0\.1:\d+/g, 'localhost'],
  [/terminal-[0-9a-f]{8}/g, 'shop'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-31T03:04:11.000Z'],
  [/(?<=frozen )\d\d:\d\d:\d\d/g, '03:04:11'],
  [/\d{13}(?=_)/g, '1769828651000'],
  [/[0-9a-f]{64}/g, 'f'.repeat(64)],
  // Ids that only appear shortened.
  [/^[0-9a-f]{8}(?= {2}open)/gm, '01a1e1ff'],
  // The incident was 15 to 49 minutes ago.
  [/\b\d\d min\b/g, '33 min'],
  [/(?<= {2})[▁▂▃▄▅▆▇█]{8}(?= {2})/g, '▁▅█▆▇▇▁▁'],
  // Actions during the test: seconds ago, or a minute on a busy machine.
  [/(?<=, )(now|\d+ (s|min) ago)$/gm, '9 s ago'],
  [/(now|\d+ (s|min) ago) +(?=development)/g, '9 s ago  '],
  [/WHEN +(?=WHO)/g, 'WHEN     '],
  [/ (now|\d+ (s|min))(?= {2}development)/g, sameWidth],
  // The last check of the queue was before or after the ingest, and the ingest some seconds ago.
  [
    /^orders {2}connected +\d+/gm,
    (found) => found.replace(/\d+$/, (count) => '0'.padStart(count.length)),
  ],
  [/(?<=\d min {2})(now|\d+ s ago) {2}/g, (found) => '9 s ago'.padEnd(found.length)],
  // Log lines of the server for requests, and lines whose order varies.
  [
    /^\{.*"msg":"(request completed|Source \\"orders\\": (rabbitmq is reachable\.|moves the dead letters .*))"\}\n/gm,
    '',
  ],
  [/"time":\d+,"pid":\d+/g, '"time":1769828651000,"pid":1'],
]

const ID = /(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])/g

/** Replaces the first id with `gggggggg-…`, the next with `hhhhhhhh-…`, and so on, also their prefixes. */
function named(text: string): string {
  const ids = [...new Set(text.match(ID))]
  return ids.reduce((before, id, at) => {
    const letter = String.fromCharCode('g'.charCodeAt(0) + at)
    const name = id.replace(/[0-9a-f]/g, letter)
    const short = new RegExp(
      `(?<=^|show |group |group:)(${id.slice(0, 8)}|${id.slice(0, 4)})(?= |$)`,
      'gm',
    )
    return before.replaceAll(id, name).replace(short, (found) => letter.repeat(found.length))
  }, text)
}

export const plain = (text: string): string =>
  DIFFERS.reduce((before, [pattern, by]) => before.replace(pattern, by as string), named(text))
