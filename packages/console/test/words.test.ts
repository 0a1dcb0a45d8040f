import { describe, expect, test } from 'vitest'
import { initialsOf } from '../src/components/avatar.tsx'
import { gridOf } from '../src/components/bar-chart.tsx'
import { bytesText, cappedText, countOf, countText, shareText } from '../src/words/numbers.ts'
import { peerText, shorten } from '../src/words/peer.ts'
import { clockText, durationText, fullTime, modeName, timeText } from '../src/words/times.ts'

/** Replaces no-break spaces, so that expectations are readable. */
const plain = (text: string) => text.replaceAll('\u00a0', ' ')

describe('numbers', () => {
  test('have groups of digits, and a mark when they are capped', () => {
    expect(countText(38112)).toBe('38,112')
    expect(cappedText(200, true)).toBe('200+')
    expect(cappedText(200, false)).toBe('200')
    expect(plain(countOf(1, 'group'))).toBe('1 group')
    expect(plain(countOf(1200, 'group'))).toBe('1,200 groups')
  })

  test('a small share is not 0, and a part is not 100 percent', () => {
    expect([0, 0.004, 0.5, 0.961, 0.9999, 1].map((share) => plain(shareText(share)))).toEqual([
      '0 %',
      '< 1 %',
      '50 %',
      '96 %',
      '99 %',
      '100 %',
    ])
  })

  test('sizes have one digit after the point where it matters', () => {
    expect([0, 412, 1_100, 12_345, 1_500_000].map((one) => plain(bytesText(one)))).toEqual([
      '0 B',
      '412 B',
      '1.1 kB',
      '12.3 kB',
      '1.5 MB',
    ])
  })
})

describe('times', () => {
  const now = Date.UTC(2026, 10, 18, 3, 4, 12)
  const berlin = { timeZone: 'Europe/Berlin' }

  test('durations have at most two units', () => {
    const ages = [-5, 0, 20_000, 360_000, 6_720_000, 7_200_000, 12 * 86_400_000]
    expect(ages.map((ms) => plain(durationText(ms)))).toEqual([
      '0 s',
      '0 s',
      '20 s',
      '6 min',
      '1 h 52 min',
      '2 h',
      '12 d',
    ])
  })

  test('a time of another day has its date, and of another year only the date', () => {
    expect(clockText(now, now, 'utc')).toBe('03:04')
    expect(clockText(now, now, 'local', berlin)).toBe('04:04')
    expect(plain(clockText(now - 86_400_000, now, 'utc'))).toBe('17 Nov 03:04')
    expect(plain(clockText(now - 400 * 86_400_000, now, 'utc'))).toBe('14 Oct 2025')
  })

  test('the mode chooses between age, local time and UTC; the tooltip has all', () => {
    expect(plain(timeText(now - 60_000, now, 'relative'))).toBe('1 min')
    expect(timeText(now, now, 'utc')).toBe('03:04')
    expect(fullTime(now, berlin)).toBe(
      '18 Nov 2026, 04:04:12 CET\n2026-11-18T03:04:12.000Z\n1794971052000 ms',
    )
    expect(modeName('local', now, berlin)).toBe('Local, CET')
    expect([modeName('utc', now), modeName('relative', now)]).toEqual(['UTC', 'Relative'])
  })
})

describe('text of a peer', () => {
  test('shows control, bidirectional and invisible characters as escapes', () => {
    expect(peerText('a\u202Eb\u200Bc\u0000\u001b[31m\r\n\td\uD800')).toBe(
      'a\\u{202e}b\\u{200b}c\\x00\\x1b[31m\\x0d\n\td\\u{d800}',
    )
    expect(peerText('Größe 漢字 🙂')).toBe('Größe 漢字 🙂')
  })

  test('is cut between two characters', () => {
    expect(shorten('abcdef', 3)).toBe('abc…')
    expect(shorten('ab🙂', 3)).toBe('ab…')
    expect(shorten('abc', 3)).toBe('abc')
  })
})

test('initials are two letters', () => {
  expect(['Ada Moreno', 'chen', 'https://id.example#ben', '…'].map(initialsOf)).toEqual([
    'AM',
    'CH',
    'HB',
    '?',
  ])
})

test('the lines of a chart are round and reach the largest value', () => {
  expect([0, 1, 7, 29, 38, 3104].map(gridOf)).toEqual([
    [1],
    [1],
    [5, 10],
    [10, 20, 30],
    [20, 40],
    [2_000, 4_000],
  ])
})
