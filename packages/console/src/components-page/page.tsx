import { FAILURE_CLASSES } from '@redrive/api/enums'
import { FailureClass } from '../components/failure-class.tsx'
import { Icon, Logo } from '../components/icon.tsx'
import { KeysList } from '../components/keys-help.tsx'
import { type IconName, ICONS } from '../components/shapes.tsx'
import { Pill, type StateName, STATES, Status, Tag } from '../components/status.tsx'
import { chooseTheme, theme } from '../preferences.ts'
import { useStore } from '../store.ts'
import { Segments } from '../components/tabs.tsx'
import { ControlsSection } from './controls.tsx'
import { DataSection } from './data.tsx'
import { FeedbackSection } from './feedback.tsx'
import { Sample } from './sample.tsx'
import './page.css'

/** Every component in every state. Only for this repository; it is not a part of the console. */
export function ComponentsPage() {
  const current = useStore(theme)
  return (
    <main className="components">
      <h1>Components</h1>
      <Segments
        label="Theme"
        options={[
          { name: 'system', label: 'System' },
          { name: 'light', label: 'Light' },
          { name: 'dark', label: 'Dark' },
        ]}
        current={current}
        onChange={chooseTheme}
      />
      <div className="components-grid">
        <Sample title="Status in heads" files="status">
          <div className="components-row">
            {(Object.keys(STATES) as StateName[]).map((state) => (
              <Pill key={state} state={state} />
            ))}
          </div>
        </Sample>
        <Sample title="Status in lists" files="status">
          <div className="components-row">
            {(Object.keys(STATES) as StateName[]).map((state) => (
              <Status key={state} state={state} />
            ))}
          </div>
          <div className="components-row">
            <Tag text="quarantined" />
            <Tag text="new" tone="bad" />
            <Tag text="expires soon" tone="warn" />
          </div>
        </Sample>
        <Sample title="Failure classes" files="failure-class">
          <div className="components-row">
            {FAILURE_CLASSES.map((name) => (
              <FailureClass key={name} name={name} />
            ))}
          </div>
        </Sample>
        <Sample title="Icons" files="icon shapes">
          <div className="components-row">
            <Logo />
            {(Object.keys(ICONS) as IconName[]).map((name) => (
              <Icon key={name} name={name} />
            ))}
          </div>
        </Sample>
        <ControlsSection />
        <DataSection />
        <FeedbackSection />
        <Sample title="Keys" files="kbd keys-help">
          <KeysList />
        </Sample>
      </div>
    </main>
  )
}
