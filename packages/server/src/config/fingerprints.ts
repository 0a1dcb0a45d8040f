import { FAILURE_CLASSES } from '@redrive/api/enums'
import { z } from 'zod'
import { text } from './values.ts'

const MATCH_EXPECTED = 'expected at least one of class, code, type, errorType, handler, text'

const match = z
  .strictObject({
    class: z
      .enum(FAILURE_CLASSES, { error: `expected one of ${FAILURE_CLASSES.join(', ')}` })
      .describe('Failure class. Default: any')
      .optional(),
    code: text(512).describe('Error code of the failure. Default: any').optional(),
    type: text(512).describe('Event type of the message. Default: any').optional(),
    errorType: text(512).describe('Type of the error, such as TypeError. Default: any').optional(),
    handler: text(512).describe('Handler that failed. Default: any').optional(),
    text: text(200)
      .refine((value) => !/^\**$/.test(value), {
        error: 'expected a character other than *, because * alone matches everything',
      })
      .describe(
        'Part of the failure message, ignoring case; `*` matches any characters. Default: any',
      )
      .optional(),
  })
  .refine((one) => Object.values(one).some((value) => value !== undefined), {
    error: MATCH_EXPECTED,
  })

const rule = z.strictObject({
  name: text(200).describe('Name of the rule. Each rule has another name'),
  source: text(255).describe('Name of a source. Default: all sources').optional(),
  match: match.describe('Conditions. A dead letter must match all of them'),
  group: text(200).describe('Name of the group. Several rules can have the same group'),
})

/** Rules that name the group of matching dead letters. */
export const fingerprints = z
  .array(rule)
  .max(200, { error: 'expected at most 200 rules' })
  .superRefine((rules, context) => {
    rules.forEach(({ name }, at) => {
      if (rules.findIndex((one) => one.name === name) === at) return
      const message = `expected a name that no other rule has, got "${name}" again`
      context.addIssue({ code: 'custom', path: [at, 'name'], message })
    })
  })
