import { readFileSync } from 'node:fs'
import { type PolicyOptions, resolvePolicy } from '@redrive/core'
import { TEXTBOOK } from '@redrive/storm'
import { expectedDrainMs, GOALS, TIMEOUT_MS } from '@redrive/storm/internal'
import { expect, test } from 'vitest'
import { COMPARED } from '../src/address-values.ts'
import type { SimulationResult } from '../src/simulation/protocol.ts'
import { policyRows } from '../src/words/policy-rows.ts'
import {
  DEFAULT_SCENARIO,
  readScenario,
  resultRows,
  scenarioSearch,
  shortestDrainMs,
  shownSeconds,
  simulateCommand,
  simulationSentence,
  spanText,
} from '../src/words/scenario.ts'

const requestOf = (changes: Partial<typeof DEFAULT_SCENARIO> = {}) => {
  const read = readScenario({ ...DEFAULT_SCENARIO, ...changes })
  if ('problem' in read) throw new Error(read.problem)
  return read.request
}

const GOOD: SimulationResult = {
  title: 'This policy',
  attemptsPerMessage: 1.02,
  falseDeadLetters: 0,
  drainRatio: 0.99,
  peak: 1.7,
  load: [...Array.from({ length: 30 }, () => 900), ...Array.from({ length: 200 }, () => 172)],
}
const BAD: SimulationResult = {
  title: 'full jitter',
  attemptsPerMessage: 6.36,
  falseDeadLetters: 0.0001,
  drainRatio: undefined,
  peak: 8.7,
  load: Array.from({ length: 900 }, () => 873),
}

/** The rows as the worker makes them. */
const rowsOf = (options: PolicyOptions) =>
  policyRows(resolvePolicy({ timeout: TIMEOUT_MS, ...options }), options).map(
    ({ name, value, setBy }) =>
      `${name}: ${value}${{ options: ' (set)', default: '', simulator: ' (simulator)' }[setBy]}`.replaceAll(
        '\u00a0',
        ' ',
      ),
  )

test('shows each value of the policy and whether the options set it', () => {
  expect(rowsOf({ retry: { attempts: 8 }, breaker: 'off' })).toEqual([
    'Timeout: 1 s (simulator)',
    'Attempts: 8 attempts (set)',
    'Backoff: 1 s–60 s, full jitter',
    'Maximum age: 14 d',
    'Breaker: off (set)',
    'Outage rule: 25 % of outcomes in 30 s',
    'Adaptive limit: starts at 10, × 0.7',
    'Retry budget: 10 % + 10 per s',
    'Poison: 3 equal failures in 24 h',
    'Flood: on',
    'Retention: 14 d',
  ])
})

test('counts the options of a class and of an open breaker as set', () => {
  const shown = rowsOf({
    ...{ timeout: '2s', concurrency: 7, onBreakerOpen: 'deadLetter' },
    retry: { classes: { transient: { attempts: 3, backoff: { kind: 'fixed', delay: '1s' } } } },
  })
  expect(shown.filter((line) => line.includes('('))).toEqual([
    'Timeout: 2 s (set)',
    'Attempts: 3 attempts (set)',
    expect.stringMatching(/^Backoff: 1 s, .*\(set\)$/) as string,
    expect.stringMatching(/^Breaker: .*, then dead letters \(set\)$/) as string,
    'Concurrency: ignored, see In flight (simulator)',
  ])
})

test('offers every textbook policy of the simulator', () => {
  const names = TEXTBOOK.map(({ name }) => name).filter((name) => name !== 'Redrive')
  expect([...names, 'none']).toEqual([...COMPARED])
})

test('accepts the limits of the command line', () => {
  const problemOf = (changes: Partial<typeof DEFAULT_SCENARIO>) => {
    const read = readScenario({ ...DEFAULT_SCENARIO, ...changes })
    return 'problem' in read ? read.problem.split(':')[0] : undefined
  }
  expect(problemOf({})).toBeUndefined()
  expect(problemOf({ arrivals: '0' })).toBe('Arrivals')
  expect(problemOf({ arrivals: 'many' })).toBe('Arrivals')
  expect(problemOf({ arrivals: '1001', capacity: '2000' })).toBe('Arrivals')
  expect(problemOf({ arrivals: '10.5' })).toBe('Arrivals')
  expect(problemOf({ capacity: '100' })).toBe('Capacity')
  expect(problemOf({ capacity: '150.5' })).toBe('Capacity')
  expect(problemOf({ capacity: '10001' })).toBe('Capacity')
  expect(problemOf({ inFlight: '2001' })).toBe('In flight')
  expect(problemOf({ inFlight: '1.5' })).toBe('In flight')
})

test('rejects a scenario that drains too slowly, with the time', () => {
  const slow = { outage: '15m', arrivals: '1000', capacity: '1001' } as const
  const read = readScenario({ ...DEFAULT_SCENARIO, ...slow })
  expect('problem' in read ? read.problem.replaceAll('\u00a0', ' ') : '').toBe(
    'Capacity: the backlog needs at least 10 d to drain. Enter more, so that it drains within 2 h.',
  )
  expect('request' in readScenario({ ...DEFAULT_SCENARIO, ...slow, capacity: '1125' })).toBe(true)
  expect('request' in readScenario({ ...DEFAULT_SCENARIO, ...slow, capacity: '1124' })).toBe(false)
  for (const kind of ['refuse', 'brown-out'] as const) {
    const { weather } = requestOf({ kind })
    expect(shortestDrainMs(weather)).toBe(expectedDrainMs(weather))
  }
})

test('keeps only changed fields in the address', () => {
  expect(scenarioSearch(DEFAULT_SCENARIO)).toEqual({})
  expect(scenarioSearch({ ...DEFAULT_SCENARIO, outage: '5m', arrivals: '20' })).toEqual({
    outage: '5m',
    arrivals: '20',
  })
})

test('returns the command that simulates the same', () => {
  expect(simulateCommand(requestOf({ compare: 'none' }))).toBe(
    'redrive simulate --outage 60s --kind refuse --arrivals 100 --capacity 150 --in-flight 100',
  )
  expect(simulateCommand(requestOf({ policy: `{"a":"it's"}` }))).toBe(
    `echo '{"a":"it'\\''s"}' > policy.json && redrive simulate policy.json --outage 60s --kind refuse --arrivals 100 --capacity 150 --in-flight 100 --compare`,
  )
})

test('returns a command with the arguments and options that the command line declares', () => {
  const program = readFileSync(new URL('../../cli/src/program/local.ts', import.meta.url), 'utf8')
  const declared = /\.command\('simulate (?<args>[^']*)'\).*?\.action\(/s.exec(program)
  expect(declared?.groups?.['args']).toBe('[policy]')
  const options = [...(declared?.[0] ?? '').matchAll(/'(--[a-z-]+)(?: <[a-z]+>)?'/g)].map(
    ([, name]) => name,
  )
  const [, command = ''] = simulateCommand(requestOf({ policy: '{}' })).split(' && ')
  const words = command.split(' ')
  expect(words.slice(0, 3)).toEqual(['redrive', 'simulate', 'policy.json'])
  const used = words.filter((word) => word.startsWith('--'))
  expect(used.length).toBeGreaterThan(0)
  expect(used.filter((name) => !options.includes(name))).toEqual([])
})

test('describes the highest load since the outage, and whether it drains', () => {
  // Longer than the arguments that a function accepts.
  const long = { ...BAD, load: Array.from({ length: 300_000 }, () => 873) }
  const both = { own: GOOD, other: long, calmMs: 30_000 }
  expect(simulationSentence(requestOf(), both).replaceAll('\u00a0', ' ')).toBe(
    'From the start of an outage of 60 s, this policy calls the dependency at most 172 times per second and drains. The textbook policy reaches 873 and does not drain.',
  )
})

test('compares results with the goals, and never rounds a lost message to zero', () => {
  const table = resultRows(GOALS).map((row) => [
    row.value(GOOD).replaceAll('\u00a0', ' '),
    row.isMet(GOOD),
    row.value(BAD).replaceAll('\u00a0', ' '),
    row.isMet(BAD),
  ])
  expect(table).toEqual([
    ['1.02', true, '6.36', false],
    ['0 %', true, '< 0.1 %', false],
    ['0.99 × minimum', true, 'does not drain', false],
    ['1.7 × arrivals', true, '8.7 × arrivals', false],
  ])
})

test('shows a missed value with enough digits to see that it is missed', () => {
  const close = { attemptsPerMessage: 1.0504, falseDeadLetters: 0, drainRatio: 1.3049, peak: 2.04 }
  const shown = resultRows(GOALS).map((row) => row.value({ ...GOOD, ...close }))
  expect(shown.map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
    '1.0504',
    '0 %',
    '1.305 × minimum',
    '2.04 × arrivals',
  ])
  const met = { attemptsPerMessage: 1.0451, drainRatio: 1.2999, peak: 1.96 }
  expect(resultRows(GOALS).map((row) => row.value({ ...GOOD, ...met }))[0]).toBe('1.05')
})

test('shows a little more than the slowest policy that drains', () => {
  expect(shownSeconds(requestOf(), [GOOD, BAD], 30_000)).toBe(265)
  expect(shownSeconds(requestOf(), [BAD], 30_000)).toBe(210)
  expect([1_000, 60_000, 300_000, 250, 1_209_600_000].map((ms) => spanText(ms))).toEqual(
    ['1 s', '60 s', '5 min', '250 ms', '14 d'].map((text) => text.replace(' ', '\u00a0')),
  )
})
