import { useState } from 'react'
import { Avatar } from '../components/avatar.tsx'
import { Button } from '../components/button.tsx'
import { Checkbox } from '../components/checkbox.tsx'
import { CodeField } from '../components/code-field.tsx'
import { Command, Equivalents } from '../components/command.tsx'
import { FilterBar } from '../components/filter-bar.tsx'
import { Icon } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { Segments, Tabs } from '../components/tabs.tsx'
import { isJson } from '../words/edited-body.ts'
import { Sample } from './sample.tsx'

const NOTHING = () => undefined

export function ControlsSection() {
  const [tab, setTab] = useState<'open' | 'muted' | 'all'>('open')
  const [section, setSection] = useState<'none' | 'source'>('none')
  const [filter, setFilter] = useState('source:orders "eu bank"')
  const [isChecked, setChecked] = useState(true)
  const [order, setOrder] = useState('Most open')
  const [body, setBody] = useState('{ "id": "pay_1", "amount": 5 }')
  const [patch, setPatch] = useState('')
  return (
    <>
      <Sample title="Buttons" files="button">
        <div className="components-row">
          <Button kind="primary">Replay 38,112…</Button>
          <Button>Discard…</Button>
          <Button kind="danger">Discard 573 messages</Button>
          <Button kind="ghost">Clear</Button>
          <Button isIcon aria-label="More">
            <Icon name="more" />
          </Button>
        </div>
        <div className="components-row">
          <Button size="small">Retry</Button>
          <Button size="small" kind="ghost">
            Copy details
          </Button>
          <Button size="small" isIcon aria-label="Pause live updates">
            <Icon name="pause" />
          </Button>
          <Button disabledReason="Permission discard is required on payments.">Discard…</Button>
        </div>
      </Sample>
      <Sample title="Tabs and choices" files="tabs">
        <Tabs
          label="Views"
          tabs={[
            { name: 'open', label: 'Open', count: '6' },
            { name: 'muted', label: 'Muted', count: '200+' },
            { name: 'all', label: 'All' },
          ]}
          current={tab}
          onChange={setTab}
        />
        <Segments
          label="Sections"
          options={[
            { name: 'none', label: 'None' },
            { name: 'source', label: 'Source' },
          ]}
          current={section}
          onChange={setSection}
        />
      </Sample>
      <Sample title="Filter" files="filter-bar" isWide>
        <FilterBar
          label="Filter groups"
          placeholder="Filter by text, source, class"
          filter={filter}
          keys={[
            { name: 'source', description: 'Name of the source', values: ['orders', 'payments'] },
            { name: 'class', description: 'Failure class', values: ['transient', 'schema'] },
          ]}
          onChange={setFilter}
        />
        <FilterBar
          label="A filter with a problem"
          placeholder="Filter"
          filter="clas:schema"
          keys={[]}
          onChange={NOTHING}
          problem={'Unknown field "clas". Did you mean "class", as in class:transient?'}
        />
      </Sample>
      <Sample title="Menu" files="menu">
        <div className="components-row">
          <Menu
            items={['Most open', 'Latest failure', 'Most in total'].map((label) => ({
              label,
              isChosen: label === order,
              onChoose: () => setOrder(label),
            }))}
          >
            {order} <Icon name="down" />
          </Menu>
          <Menu
            isIcon
            label="More actions"
            items={[
              { label: 'Assign to me', keys: 'a', onChoose: NOTHING },
              {
                label: 'Resolve',
                onChoose: NOTHING,
                disabledReason: 'Permission triage is required.',
              },
            ]}
          >
            <Icon name="more" />
          </Menu>
        </div>
      </Sample>
      <Sample title="Checkbox and person" files="checkbox avatar">
        <div className="components-row">
          <Checkbox label="Select the group" isChecked={isChecked} onChange={setChecked} />
          <Checkbox label="Nothing selected" isChecked={false} onChange={NOTHING} />
          <Checkbox label="Some selected" isChecked={false} isPartly onChange={NOTHING} />
          <Avatar name="Ada Moreno" />
          <Avatar name="chen" size="small" />
        </div>
      </Sample>
      <Sample title="Editor of JSON" files="code-field" isWide>
        <CodeField
          label="Body"
          value={body}
          onChange={setBody}
          isJson
          isInvalid={!isJson(body)}
          description="The body that is published."
        />
        <CodeField
          label="Patch"
          value={patch}
          onChange={setPatch}
          isJson
          description="Empty: no change."
          hint={'[{ "op": "remove", "path": "/note" }]'}
        />
      </Sample>
      <Sample title="Commands" files="command">
        <Equivalents
          cli="redrive groups show 7f3a"
          api="curl -H &quot;Authorization: Bearer $REDRIVE_TOKEN&quot; $REDRIVE_URL/api/v1/groups/7f3a0b9e"
        />
        <Command text="redrive discard --group 41be" />
      </Sample>
    </>
  )
}
