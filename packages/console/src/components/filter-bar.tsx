import { formatFilterWord } from '@redrive/api/filter'
import { useId, useRef, useState } from 'react'
import { wordTexts } from '../words/filter-words.ts'
import { Icon } from './icon.tsx'
import { Kbd } from './kbd.tsx'
import './filter-bar.css'

export interface FilterKey {
  readonly name: string
  readonly description: string
  /** Values to complete, from the loaded rows. */
  readonly values: readonly string[]
}

export interface FilterBarProps {
  readonly label: string
  readonly placeholder: string
  /** The words, in the filter language. */
  readonly filter: string
  readonly keys: readonly FilterKey[]
  readonly onChange: (filter: string) => void
  /** Why the filter cannot be applied. */
  readonly problem?: string | undefined
}

interface Option {
  readonly text: string
  readonly note: string
  /** Whether the choice completes the word. A field needs a value first. */
  readonly isWord: boolean
}

/** The filter of a page: words such as `source:orders`, and free text. The key `/` focuses it. */
export function FilterBar(props: FilterBarProps) {
  const { label, placeholder, filter, keys, onChange, problem } = props
  const [typed, setTyped] = useState('')
  const [isOpen, setOpen] = useState(false)
  const [chosen, setChosen] = useState(-1)
  const input = useRef<HTMLInputElement>(null)
  const list = useId()
  const words = wordsOf(filter)
  const options = isOpen ? optionsFor(typed, keys) : []
  const change = (next: readonly string[]) => onChange(next.join(' '))
  const type = (text: string) => {
    setTyped(text)
    setOpen(true)
    setChosen(-1)
  }
  const add = (word: string) => {
    if (word.trim() !== '') change([...words.map(({ text }) => text), ...addedWords(word)])
    type('')
    setOpen(false)
  }
  const choose = ({ text, isWord }: Option) => (isWord ? add(text) : type(text))
  const onKeyDown = (event: React.KeyboardEvent) => {
    const option = options[chosen]
    if (event.key === 'Enter') {
      event.preventDefault()
      if (option === undefined) add(typed)
      else choose(option)
    } else if (event.key === 'Backspace' && typed === '' && words.length > 0) {
      change(words.slice(0, -1).map(({ text }) => text))
    } else if (event.key === 'Escape') {
      event.stopPropagation()
      if (isOpen && options.length > 0) setOpen(false)
      else input.current?.blur()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      setOpen(true)
      const step = event.key === 'ArrowDown' ? 1 : -1
      setChosen((at) => Math.max(-1, Math.min(options.length - 1, at + step)))
    }
  }
  return (
    <div className="filter-anchor">
      <search className="filter">
        <Icon name="search" className="faint" />
        {words.map(({ text, field, value }, at) => (
          <span className="filter-word" key={`${at} ${text}`}>
            {field === undefined ? null : <span>{field}</span>}
            <b>{value}</b>
            <button
              type="button"
              aria-label={`Remove ${text}`}
              onClick={() => {
                change(words.filter((_, other) => other !== at).map((word) => word.text))
                input.current?.focus()
              }}
            >
              <Icon name="close" size={10} />
            </button>
          </span>
        ))}
        <input
          ref={input}
          role="combobox"
          aria-label={label}
          aria-expanded={options.length > 0}
          aria-controls={list}
          aria-activedescendant={chosen >= 0 ? `${list}-${chosen}` : undefined}
          aria-invalid={problem === undefined ? undefined : true}
          autoComplete="off"
          spellCheck={false}
          data-filter=""
          placeholder={words.length === 0 ? placeholder : 'Add a word'}
          value={typed}
          onChange={(event) => type(event.target.value)}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={onKeyDown}
        />
        <span className="only-wide">
          <Kbd keys="/" />
        </span>
      </search>
      <ul className="filter-options" id={list} role="listbox" aria-label={`${label}: suggestions`}>
        {options.map((option, at) => (
          <li
            key={option.text}
            id={`${list}-${at}`}
            role="option"
            aria-selected={at === chosen}
            // Before `blur`, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault()
              choose(option)
            }}
          >
            <code>{option.text}</code>
            <span className="faint small cut">{option.note}</span>
          </li>
        ))}
      </ul>
      {problem === undefined ? null : (
        <p className="filter-problem small" role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

/** Returns the words of a filter. Text that cannot be read, such as an open quote, is one word. */
function wordsOf(filter: string) {
  try {
    return wordTexts(filter)
  } catch {
    return [{ text: filter, field: undefined, value: filter }]
  }
}

/** Returns what a user typed as words. Text without a field is one word, with its spaces. */
function addedWords(typed: string): readonly string[] {
  const text = typed.trim()
  return /^[\w-]+:/.test(text)
    ? wordsOf(text).map((one) => one.text)
    : [formatFilterWord(undefined, text)]
}

/** 8 suggestions: more are found faster by typing. */
const OPTIONS_MAX = 8

function optionsFor(typed: string, keys: readonly FilterKey[]): readonly Option[] {
  const at = typed.indexOf(':')
  const start = typed.toLowerCase()
  if (at < 0) {
    return keys
      .filter(({ name }) => name.startsWith(start))
      .map(({ name, description }) => ({ text: `${name}:`, note: description, isWord: false }))
      .slice(0, OPTIONS_MAX)
  }
  const key = keys.find(({ name }) => name === typed.slice(0, at))
  const value = start.slice(at + 1)
  return (key?.values ?? [])
    .filter((one) => one.toLowerCase().includes(value))
    .slice(0, OPTIONS_MAX)
    .map((one) => ({ text: formatFilterWord(key?.name, one), note: '', isWord: true }))
}
