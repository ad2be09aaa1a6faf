# SPDX-License-Identifier: Apache-2.0
#
# A page in headless Chromium, driven over a pipe in the DevTools protocol: for tests that click.

import atexit
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from command import Skip

# Half of the time would go into what is around a page: the toolbar and its panels, pages to go back
# to. A kiosk has none.
FEATURES = ['AiModeOmniboxEntryPoint', 'BackForwardCache', 'WebUIOmniboxAimPopup',
            'WebUIOmniboxFullPopup', 'WebUIOmniboxPopup']
OPTIONS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
           '--disable-background-networking', '--disable-component-update', '--disable-sync',
           '--hide-scrollbars', '--remote-debugging-pipe', '--kiosk',
           '--disable-features=' + ','.join(FEATURES)]


class Browser:
    """A page. What it asks of a network, and what goes wrong in it, is in `asked`, `errors`."""

    shared = None

    def __init__(self):
        program = shutil.which('chromium')
        if program is None:
            raise Skip('there is no chromium')
        self.folder = tempfile.TemporaryDirectory(prefix='npusim-browser-',
                                                  ignore_cleanup_errors=True)
        to_it, self.to = os.pipe()
        self.back, from_it = os.pipe()
        self.asked, self.errors, self.text, self.number = [], [], b'', 0
        self.process = subprocess.Popen(
            ['sh', '-c', 'exec "$@" 3<&{} 4>&{}'.format(to_it, from_it), 'sh', program, *OPTIONS,
             '--user-data-dir=' + self.folder.name, 'about:blank'],
            pass_fds=(to_it, from_it), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.session, self.url = None, 'about:blank'
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        got = self.call('Target.attachToTarget', targetId=target, flatten=True)
        self.session = got['sessionId']
        for domain in 'Page', 'Runtime', 'Network':
            self.call(domain + '.enable')

    def end(self):
        """Its processes have left the folder afterwards."""
        self.session = None
        try:
            self.call('Browser.close')
            self.process.wait(timeout=20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.folder.cleanup()

    def empty(self, width, height, dark):
        """As if nothing had been shown: no error, the mouse in a corner. A page that is there stays
        until the next is opened: to show an empty one first would take as long again."""
        self.call('Emulation.setEmulatedMedia', features=[
            dict(name='prefers-color-scheme', value='dark' if dark else 'light')])
        self.resize(width, height)
        self.mouse('mouseMoved', 0, 0)
        self.asked.clear()
        self.errors.clear()

    def message(self):
        while b'\0' not in self.text:
            got = os.read(self.back, 1 << 20)
            if not got:
                raise AssertionError('chromium has ended')
            self.text += got
        line, self.text = self.text.split(b'\0', 1)
        return json.loads(line)

    def call(self, method, **params):
        self.number += 1
        ask = dict(id=self.number, method=method, params=params)
        if self.session:
            ask['sessionId'] = self.session
        data = json.dumps(ask).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        while True:
            got = self.message()
            about = got.get('params', {})
            if got.get('id') == self.number:
                if 'error' in got:
                    raise AssertionError('{}: {}'.format(method, got['error']))
                return got['result']
            if got.get('method') == 'Runtime.exceptionThrown':
                details = about['exceptionDetails']
                self.errors.append(details.get('exception', {}).get('description', details['text']))
            if got.get('method') == 'Runtime.consoleAPICalled' and about['type'] == 'error':
                self.errors.append(str(about['args']))
            if got.get('method') == 'Network.requestWillBeSent':
                url = about['request']['url']
                if not url.startswith(('file:', 'data:', 'blob:', 'about:')):
                    self.asked.append(url)

    def resize(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)

    def open(self, path, fragment=''):
        # What was there is ready, and would answer until the next page has come.
        self.run('(({ dataset }) => { delete dataset.ready; delete dataset.error; })'
                 '(document.documentElement)')
        url = pathlib.Path(path).resolve().as_uri()
        if fragment and url == self.url:  # else the page would stay, and only turn to the fragment
            self.call('Page.navigate', url='about:blank')
        self.url = url
        self.call('Page.navigate', url=url + fragment)
        self.wait('((e) => e && (e.dataset.ready || e.dataset.error))(document.documentElement)')

    def run(self, script):
        """The value of an expression, or of what it promises."""
        got = self.call('Runtime.evaluate', expression=script, awaitPromise=True,
                        returnByValue=True)
        if 'exceptionDetails' in got:
            details = got['exceptionDetails']
            raise AssertionError(details.get('exception', {}).get('description', details['text']))
        return got['result'].get('value')

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(script):
            if self.errors or time.monotonic() > end:
                raise AssertionError('{} did not come: {}'.format(script, self.errors))
            time.sleep(0.02)

    def settle(self):
        """What was asked for is drawn."""
        self.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => '
                 'requestAnimationFrame(done))))')

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse('mouseMoved', x, y)
        self.mouse('mousePressed', x, y, button='left', clickCount=1)
        self.mouse('mouseReleased', x, y, button='left', clickCount=1)
        self.settle()

    def box(self, selector):
        """Left, top, width and height of an element, which is brought into sight."""
        return self.run('(() => {{ const e = document.querySelector({!r}); '
                        'e.scrollIntoView({{ block: "center" }}); '
                        'const b = e.getBoundingClientRect(); '
                        'return [b.left, b.top, b.width, b.height]; }})()'.format(selector))

    def press(self, key):
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key)
        self.settle()

    def shot(self, path, whole=True):
        got = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(got['data']))


@contextlib.contextmanager
def emptied(width=1300, height=900, dark=False):
    """The browser that all cases of a test share: one takes seconds to start."""
    if Browser.shared is None or Browser.shared.process.poll() is not None:
        Browser.shared = Browser()
        atexit.register(Browser.shared.end)
    Browser.shared.empty(width, height, dark)
    yield Browser.shared
