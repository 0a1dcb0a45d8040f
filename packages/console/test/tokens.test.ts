import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url))
const read = (path: string) => readFileSync(SOURCES + path, 'utf8')

/** Returns the colours of a theme by name. */
function coloursIn(block: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
}

const [light = '', dark = ''] = read('styles/tokens.css').split('[data-theme="dark"]')
const THEMES = { light: coloursIn(light), dark: { ...coloursIn(light), ...coloursIn(dark) } }

/** Relative luminance, WCAG 2.2. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: string, other: string): number {
  const [bright = 0, darker = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a)
  return (bright + 0.05) / (darker + 0.05)
}

const TEXT = 4.5
const SHAPE = 3
// biome-ignore format: one row per background
const PAIRS: readonly (readonly [ground: string, least: number, ...names: string[]])[] = [
  ['surface', TEXT, 'ink', 'ink-2', 'ink-3', 'accent', 'bad', 'warn', 'good'],
  ['canvas', TEXT, 'ink', 'ink-2', 'ink-3', 'accent', 'bad'],
  ['sunken', TEXT, 'ink-2', 'ink-3'],
  ['hover', TEXT, 'ink-2', 'ink-3', 'accent', 'bad'],
  ['selected', TEXT, 'ink-2', 'ink-3', 'accent', 'bad'],
  ['accent', TEXT, 'on-accent'],
  ['bad-soft', TEXT, 'bad', 'ink-2'],
  ['warn-soft', TEXT, 'warn', 'ink-2'],
  ['good-soft', TEXT, 'good'],
  ['run-soft', TEXT, 'run', 'ink-2'],
  ['idle-soft', TEXT, 'idle', 'ink-2'],
  ['surface', SHAPE, 'warn-mark', 'good-mark', 'idle-mark', 'control', 'focus', 'class-transient', 'class-schema', 'class-business', 'class-integration', 'class-unknown'],
]

test.for(['light', 'dark'] as const)('every pair of colours has enough contrast: %s', (theme) => {
  const weak = PAIRS.flatMap(([ground, least, ...names]) =>
    names.flatMap((name) => {
      const ratio = contrast(THEMES[theme][name] ?? '', THEMES[theme][ground] ?? '')
      return ratio >= least ? [] : [`${name} on ${ground}: ${ratio.toFixed(2)}`]
    }),
  )
  expect(weak).toEqual([])
})

test('both themes have the same colours', () => {
  const names = (block: string) => Object.keys(coloursIn(block))
  expect(names(dark).toSorted()).toEqual(names(light).toSorted())
})

test('colours are only in the tokens, and every rule is in a layer', () => {
  const styles = globSync('**/*.css', { cwd: SOURCES }).filter((path) => !path.includes('tokens'))
  const coloured = styles.filter((path) =>
    /#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch)a?\(/i.test(read(path)),
  )
  expect(coloured).toEqual([])
  const loose = styles.filter((path) => !/^(\/\*[^]*?\*\/\s*)?@layer /.test(read(path)))
  expect(loose).toEqual([])
})

test('every colour of a style is a token', () => {
  const known = new Set([...read('styles/tokens.css').matchAll(/(--[\w-]+):/g)].map(([, n]) => n))
  const used = globSync('**/*.{css,tsx}', { cwd: SOURCES }).flatMap((path) =>
    [...read(path).matchAll(/var\((--[\w-]+)/g)].map(([, name]) => ({ path, name })),
  )
  expect(used.filter(({ name }) => !known.has(name))).toEqual([])
})
