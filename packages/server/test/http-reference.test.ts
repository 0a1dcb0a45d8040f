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

test('the reference is shown in a browser, asks nobody else, and breaks no rule of its policy', async () => {
  const page = await browser.newPage()
  const said: string[] = []
  const asked: string[] = []
  page.on('console', (message) => said.push(message.text()))
  page.on('pageerror', (error) => said.push(error.message))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${stage.url}/api/reference/`)
  await page.getByText('Freeze a selection and see what would be replayed').first().waitFor()
  const elsewhere = asked.filter((url) => !url.startsWith(stage.url) && !url.startsWith('data:'))
  expect(elsewhere).toEqual([])
  expect(said.filter((line) => /Content Security Policy|violates|Refused/.test(line))).toEqual([])
  await page.close()
}, 60_000)
