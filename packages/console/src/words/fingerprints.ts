import type { Output } from '@redrive/api'
import { FAILURE_CLASSES } from '@redrive/api/enums'
import type { Draft } from './rule-draft.ts'

type Rule = Output<'listFingerprints'>['rules'][number]

/** The conditions of a rule, in the order of the form. */
// biome-ignore format: one row per condition
export const CONDITIONS = [
  { name: 'text', label: 'Message contains', note: '* matches any characters' },
  { name: 'code', label: 'Error code', note: '' },
  { name: 'errorType', label: 'Type of the error', note: 'such as TypeError' },
  { name: 'type', label: 'Event type', note: '' },
  { name: 'handler', label: 'Handler', note: '' },
] as const

/** Returns the rule of a form, or what is missing in it. */
export function ruleOf(draft: Draft): { readonly rule: Rule } | { readonly problem: string } {
  const { name = '', source, group = '' } = draft
  const failureClass = FAILURE_CLASSES.find((one) => one === draft.class)
  const match = {
    ...(failureClass === undefined ? {} : { class: failureClass }),
    ...Object.fromEntries(
      CONDITIONS.flatMap(({ name: key }) => {
        const value = draft[key]?.trim() ?? ''
        return value === '' ? [] : [[key, value]]
      }),
    ),
  }
  if (Object.keys(match).length === 0) return { problem: 'Enter at least one condition.' }
  if (group.trim() === '') return { problem: 'Enter the name of the group.' }
  return {
    rule: {
      name: name.trim() === '' ? group.trim() : name.trim(),
      ...(source === undefined ? {} : { source }),
      match,
      group: group.trim(),
    },
  }
}

/** Returns the conditions of a rule as a sentence: code is 55P03 and the message contains "lock". */
export function matchText({ source, match }: Rule): string {
  const parts = [
    ...(source === undefined ? [] : [`source is ${source}`]),
    ...(match.class === undefined ? [] : [`class is ${match.class}`]),
    ...(match.code === undefined ? [] : [`code is ${match.code}`]),
    ...(match.errorType === undefined ? [] : [`type of the error is ${match.errorType}`]),
    ...(match.type === undefined ? [] : [`event type is ${match.type}`]),
    ...(match.handler === undefined ? [] : [`handler is ${match.handler}`]),
    ...(match.text === undefined ? [] : [`message contains "${match.text}"`]),
  ]
  return parts.join(' and ')
}

/** Returns the rule for the config file. JSON is also valid YAML. */
export const configText = (rule: Rule): string => `- ${JSON.stringify(rule)}`

/** Returns the rules to try: the new one first, because the first match decides, and not twice by its name. */
export const withDraft = (rules: readonly Rule[], draft: Rule): readonly Rule[] => [
  draft,
  ...rules.filter(({ name }) => name !== draft.name),
]
