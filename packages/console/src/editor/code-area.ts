import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import {
  bracketMatching,
  ensureSyntaxTree,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { type Diagnostic, linter, lintGutter } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import {
  EditorView,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view'
import { codeColours, codeTheme } from './code-theme.ts'

export interface CodeAreaOptions {
  readonly text: string
  readonly label: string
  readonly hint: string | undefined
  /** Whether the text is JSON: with colours and marked errors. */
  readonly isJson: boolean
  readonly onChange: (text: string) => void
}

export interface CodeAreaState {
  readonly text: string
  readonly isInvalid: boolean
  /** Read by screen readers after the name. */
  readonly description: string
}

/** A part of a text, in characters. An empty part is the place of the caret. */
export interface TextRange {
  readonly from: number
  readonly to: number
}

export interface CodeArea {
  update(state: CodeAreaState): void
  /** Moves the focus into the text and selects this part. */
  focus(selected: TextRange): void
  close(): void
}

/** 400 ms after the last key: an unfinished value is not an error yet. */
const LINT_DELAY_MS = 400

/**
 * Replaces selected text itself. Chromium would keep its look in a style attribute, which the content security policy refuses with
 * an error in the console.
 */
const replaceSelected = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== 'insertText' || event.data === null) return false
    // `getTargetRanges` is empty in a shadow root.
    const shadowRoots = view.root instanceof ShadowRoot ? [view.root] : []
    const range = document.getSelection()?.getComposedRanges({ shadowRoots })[0]
    if (range === undefined || range.collapsed) return false
    const insert = view.state.toText(event.data)
    const from = view.posAtDOM(range.startContainer, range.startOffset)
    view.dispatch({
      changes: { from, to: view.posAtDOM(range.endContainer, range.endOffset), insert },
      selection: { anchor: from + insert.length },
      ...{ userEvent: 'input.type', scrollIntoView: true },
    })
    return true
  },
})

/** Tab is not bound: it leaves the editor, as it leaves each other field. */
const COMMON: Extension = [
  history(),
  keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
  lineNumbers(),
  // Control characters and overrides of the direction are visible.
  highlightSpecialChars(),
  replaceSelected,
  bracketMatching(),
  indentOnInput(),
  // The browser does not find text in lines that are not drawn.
  search({ top: true }),
  EditorView.lineWrapping,
  syntaxHighlighting(codeColours),
  codeTheme,
]

/** 200 ms: the time to parse a megabyte. A longer text has no mark; the sentence below the field reports its error. */
const PARSE_MS = 200

/** Returns the first error of the JSON, on at least one character. Messages of browsers do not have its place. */
function jsonProblems({ state }: EditorView): readonly Diagnostic[] {
  const { length } = state.doc
  const found: Diagnostic[] = []
  ensureSyntaxTree(state, length, PARSE_MS)?.iterate({
    enter({ type, from, to }) {
      if (!type.isError || found.length > 0) return
      const start = Math.max(0, Math.min(from, length - 1))
      const end = Math.min(length, Math.max(to, start + 1))
      found.push({ from: start, to: end, severity: 'error', message: 'Not JSON.' })
    },
  })
  // Nothing typed is no error.
  return length === 0 ? [] : found
}

const JSON_TEXT: Extension = [json(), linter(jsonProblems, { delay: LINT_DELAY_MS }), lintGutter()]

/** Opens an editor as the last child of an element. */
export function openCodeArea(parent: HTMLElement, options: CodeAreaOptions): CodeArea {
  const { text, label, hint, isJson, onChange } = options
  const host = document.createElement('div')
  parent.append(host)
  // In a shadow root, CodeMirror uses constructed style sheets. In the page it would insert style elements, which the
  // content security policy refuses.
  const root = host.attachShadow({ mode: 'open' })
  const attributes = new Compartment()
  let current = text
  const extensions: Extension = [
    COMMON,
    isJson ? JSON_TEXT : [],
    hint === undefined ? [] : placeholder(hint),
    attributes.of([]),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (!docChanged) return
      current = state.doc.toString()
      onChange(current)
    }),
  ]
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({ doc: text, extensions }),
  })
  return {
    update({ text: next, isInvalid, description }) {
      view.dispatch({
        effects: attributes.reconfigure(
          EditorView.contentAttributes.of({
            'aria-description': description,
            ...(isInvalid ? { 'aria-invalid': 'true' } : {}),
          }),
        ),
      })
      if (next === current) return
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } })
    },
    focus({ from, to }) {
      const { length } = view.state.doc
      view.dispatch({ selection: { anchor: Math.min(from, length), head: Math.min(to, length) } })
      view.focus()
    },
    close() {
      view.destroy()
      host.remove()
    },
  }
}
