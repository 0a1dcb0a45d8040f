import { expect, it } from 'vitest'
import { drillRules, scaledRules } from '../src/alerts/rules.ts'

it('divides each duration of a rule by the factor', () => {
  const rules = `
    expr: 'sum(increase(a_total[10m])) > 0 or a_total unless present_over_time(a_total[1h] offset 10m)'
    for: 5m
    expr: 'max by (source) (a_age_seconds) > 1800'
    for: 1h
    expr: 'sum(rate(a_total[5m])) > 100'`
  expect(scaledRules(rules, 30)).toBe(`
    expr: 'sum(increase(a_total[20s])) > 0 or a_total unless present_over_time(a_total[120s] offset 20s)'
    for: 10s
    expr: 'max by (source) (a_age_seconds) > 60'
    for: 120s
    expr: 'sum(rate(a_total[10s])) > 100'`)
})

it('leaves no duration of the rules as it was', () => {
  expect(drillRules(30)).not.toMatch(/\d[mhd]\b(?!.*summary)/)
  expect(drillRules(30)).not.toMatch(/_seconds\)? [<>]=? (?:1800|3600)\b/)
})
