import { services } from '@redrive/dev-support'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { database, staged } from './http-stage.ts'

const stage = await staged(await database('redrive_server_reference'))
let browser: Browser

beforeAll(async () => {
  await services('up', 'chromium')
  const executablePath = await services('do', 'chromium', 'path')
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
}, 120_000)
afterAll(() => browser.close())

test('the reference page loads in a browser, without foreign requests and policy violations', async () => {
  const page = await browser.newPage()
  const messages: string[] = []
  const requests: string[] = []
  page.on('console', (message) => messages.push(message.text()))
  page.on('pageerror', (error) => messages.push(error.message))
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(`${stage.url}/api/reference/`)
  await page.getByText('Plan a replay run and preview its items').first().waitFor()
  const foreign = requests.filter((url) => !url.startsWith(stage.url) && !url.startsWith('data:'))
  expect(foreign).toEqual([])
  const violations = /Content Security Policy|violates|Refused/
  expect(messages.filter((line) => violations.test(line))).toEqual([])
  await page.close()
})
