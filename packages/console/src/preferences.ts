import { createPreference } from './store.ts'

/** The theme. `public/theme.js` reads it before the first paint. */
export const theme = createPreference('redrive-theme', ['system', 'light', 'dark'])
/** How times are shown. */
export const timeMode = createPreference('redrive-time', ['relative', 'local', 'utc'])
/** Whether single keys are shortcuts. WCAG 2.1.4 requires that they can be switched off. */
export const singleKeys = createPreference('redrive-keys', ['on', 'off'])

/** Changes the theme of this page and of the other open pages. */
export function chooseTheme(value: ReturnType<typeof theme.get>): void {
  theme.set(value)
  dispatchEvent(new Event('redrive-theme'))
}
