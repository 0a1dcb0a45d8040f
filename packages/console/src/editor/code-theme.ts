import { HighlightStyle } from '@codemirror/language'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/**
 * The tokens of the page also apply inside the shadow root of the editor. The base theme of CodeMirror is
 * for light pages, so each of its colours that can be visible has a token here.
 */
export const codeTheme = EditorView.theme({
  '&': {
    minHeight: 0,
    border: '1px solid var(--control)',
    borderRadius: 'var(--radius-2)',
    background: 'var(--surface)',
    color: 'var(--ink)',
    fontSize: 'var(--text-sm)',
  },
  '&.cm-focused': { outline: '2px solid var(--focus)', borderColor: 'var(--focus)' },
  '&:has([aria-invalid=true])': { borderColor: 'var(--bad)' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '20px' },
  '.cm-content': { padding: 'var(--space-2) 0', caretColor: 'var(--ink)' },
  '.cm-gutters': {
    borderRight: '1px solid var(--line)',
    borderRadius: 'var(--radius-2) 0 0 var(--radius-2)',
    background: 'var(--sunken)',
    color: 'var(--ink-3)',
  },
  '.cm-placeholder': { color: 'var(--ink-3)' },
  '.cm-specialChar': { color: 'var(--bad)' },
  '& .cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    background: 'var(--selected)',
    outline: '1px solid var(--line-strong)',
  },
  '& .cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket': {
    background: 'var(--bad-soft)',
  },
  '.cm-searchMatch': { background: 'var(--warn-soft)', outline: '1px solid var(--warn-line)' },
  '.cm-searchMatch-selected': { background: 'var(--selected)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad) 1px',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip, .cm-panels': {
    border: '1px solid var(--line-strong)',
    background: 'var(--surface)',
    color: 'var(--ink)',
    fontFamily: 'var(--font-ui)',
  },
  '.cm-panels': { borderWidth: '0 0 1px', borderRadius: 'var(--radius-2) var(--radius-2) 0 0' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-textfield, .cm-button': {
    minHeight: '28px',
    border: '1px solid var(--control)',
    borderRadius: 'var(--radius-2)',
    background: 'var(--surface)',
    color: 'inherit',
  },
  '.cm-panel.cm-search [name=close]': {
    width: '28px',
    color: 'inherit',
    fontSize: 'var(--text-lg)',
  },
  // As in all fields: a smaller text makes the browser of a phone zoom in.
  '@media (max-width: 720px)': { '&': { fontSize: '16px' } },
})

/** The same colours as in a body that is only shown. */
export const codeColours = HighlightStyle.define([
  { tag: tags.string, color: 'var(--good)' },
  { tag: tags.propertyName, color: 'var(--ink)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--accent)' },
  { tag: [tags.separator, tags.bracket], color: 'var(--ink-3)' },
])
